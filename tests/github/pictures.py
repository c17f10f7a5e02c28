"""Summaries as GitHub shows them, as pictures to look at:  python -m tests.github.pictures FOLDER"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cmarkgfm
from cmarkgfm.cmark import Options

from tests.report import samples
from validator.report.model import GateReport, Outcome, PolicyChangeRow, Report, Verdict
from validator.report.summary import render_summary

_STYLE = """
body { font: 14px/1.5 "DejaVu Sans", sans-serif; color: #1f2328; margin: 24px; max-width: 980px; }
code, pre { font: 12px "DejaVu Sans Mono", monospace; background: #eff1f3; border-radius: 6px; padding: .15em .35em; }
pre { padding: 12px; overflow: auto; } pre code { padding: 0; } h3 { font-size: 1.2em; margin: 20px 0 10px; }
table { border-collapse: collapse; margin: 10px 0; display: block; overflow: auto; }
th, td { border: 1px solid #d1d9e0; padding: 5px 12px; } tr:nth-child(2n) { background: #f6f8fa; }
"""

_CHROMIUM = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
)  # fmt: skip


def rebaselined() -> Report:
    """A change that brings a golden of its own, and alters the policy."""
    changed = samples.changed()
    golden = replace(changed.gates[0], required=False)
    sentence = "Equal to the golden that comes with the change: 8c1d22a9be44, new attention kernel (Ada)."
    return replace(
        changed,
        verdict=Verdict.REBASELINED,
        sentence="The bits differ from the old golden and equal the new one that comes with the change.",
        gates=(golden, GateReport("rebaseline", Outcome.HOLDS, True, sentence, 1), *changed.gates[1:]),
        stamps=(),
        next_step="",
        new_golden={
            "digest": "8c1d22a9be44" * 5, "reason": "new attention kernel, see pull request 12", "approver": "Ada",
            "requester": "Grace", "drift": {"lm_loss": 0.0012, "grad_norm": 0.013},
        },
        policy_changes=(
            PolicyChangeRow("launch_seconds", "300", "600"),
            PolicyChangeRow("gates.overhead", None, "off"),
        ),
    )  # fmt: skip


def all_reports() -> dict[str, Report]:
    """A report a verdict."""
    return {name: make() for name, make in samples.SAMPLES.items()} | {"rebaselined": rebaselined()}


def picture(report: Report, folder: Path, name: str) -> Path:
    """One summary as a PNG of 1,000 pixels' width."""
    markdown = render_summary(report, "https://github.example/team/train/actions/runs/1")
    body = cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    page = folder / f"{name}.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{_STYLE}</style>{body}", encoding="utf-8")
    target = folder / f"{name}.png"
    options = (f"--user-data-dir={folder / 'profile'}", f"--screenshot={target}", "--window-size=1000,1700")
    subprocess.run([*_CHROMIUM, *options, page.as_uri()], check=True, capture_output=True, timeout=60)
    return target


if __name__ == "__main__":
    for label, made in all_reports().items():
        print(picture(made, Path(sys.argv[1]), label))
