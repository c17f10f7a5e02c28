"""A temporary project: one small pipeline, a golden store, and the double in the place of Python."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.double.double import Double
from validator.cli import main
from validator.pipeline.suggest import LINK_TO_WRITE, REASON_TO_WRITE

PIPELINE = """\
name: tiny
description: a few steps of the double
computation:
  device: cpu
  nodes: 1
  ranks: 2
  steps: 9
  seed: 1234
  spec: reference
  data:
    corpus: {documents: 20, vocabulary: 64, seed: 7}
  arguments: |
    --hidden-size 64 --bf16
  variables: {ATEN_CPU_CAPABILITY: default}
policy:
  gates: {golden: required, repeatability: required, resume: required}
  resume:
    saves: [{step: 3, mode: synchronous}, {step: 6, mode: asynchronous}]
  limits: {launch_seconds: 120}
"""


def written_out(suggested: str) -> str:
    """Suggested waivers as a person completes them."""
    reason, link = "Upstream does not bring it back.", "https://github.com/NVIDIA/Megatron-LM/pull/6858"
    return suggested.replace(REASON_TO_WRITE, reason).replace(LINK_TO_WRITE, link)


@dataclass(frozen=True)
class Ran:
    """One command that ran: its exit code and what it printed; ``report`` is the JSON report of a check."""

    code: int
    out: str
    err: str
    report: dict[str, Any]

    @property
    def verdict(self) -> str:
        return str(self.report["verdict"])

    def gate(self, name: str) -> dict[str, Any]:
        (gate,) = [gate for gate in self.report["gates"] if gate["name"] == name]
        return dict(gate)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """Outcomes of golden, repeatability, resume, recorder."""
        return tuple(self.gate(name)["outcome"] for name in ("golden", "repeatability", "resume", "recorder"))


@dataclass(frozen=True)
class Project:
    """The project; commands run in its folder, in this process."""

    folder: Path
    double: Double
    capsys: pytest.CaptureFixture[str]

    @property
    def pipeline(self) -> Path:
        return self.folder / "pipelines" / "tiny.yaml"

    @property
    def goldens(self) -> Path:
        return self.folder / "golden"

    def change(self, old: str, new: str) -> None:
        """Replace a piece of the pipeline, which must be there."""
        text = self.pipeline.read_text()
        assert old in text
        self.pipeline.write_text(text.replace(old, new))

    def run(self, *words: str) -> Ran:
        """Run a command as it stands."""
        self.capsys.readouterr()
        code = main(words)
        out, err = self.capsys.readouterr()
        return Ran(code, out, err, {})

    def check(self, *words: str) -> Ran:
        """Check the pipeline, launching the double."""
        file = self.folder / "report.json"
        file.unlink(missing_ok=True)
        ran = self.run("check", "tiny", "--python", str(self.double.python), "--json", str(file), *words)
        report = json.loads(file.read_text()) if file.exists() else {}
        return Ran(ran.code, ran.out, ran.err, report)

    def record_golden(self, *words: str) -> Ran:
        """Record what the double computes now as golden."""
        names = ("--reason", "first recording", "--approver", "Ann")
        return self.run("golden", "record", "tiny", "--python", str(self.double.python), *names, *words)

    @property
    def newest_run(self) -> Path:
        return max((self.folder / "runs").glob("tiny-*"), key=lambda path: path.stat().st_mtime_ns)
