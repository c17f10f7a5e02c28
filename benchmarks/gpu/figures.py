"""Gathers what the sections of ``benchmarks/on_gpu.sh`` left in a folder into one file, and prints it as a table.

    python benchmarks/gpu/figures.py FOLDER PIPELINE

The exit status is 0 where every section that is in the table held.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Sections in the order of the table, with the file in which each leaves its figures.
FILES = {
    "facts": "facts.json", "digest": "digest.json", "tests": "", "golden": "golden.json", "check": "candidate.json",
    "default-mode": "default-mode.json", "cpu": "cpu.json", "fingerprints": "fingerprints.json",
    "overhead": "overhead.json",
}  # fmt: skip

#: What ``timeout`` ends with where a section took too long.
TIMED_OUT = (124, 137)


def read(file: Path) -> Any:
    """The JSON of one section, ``None`` where it left none."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def ended(status: int | None) -> str:
    """A section's end in words."""
    if status is None:
        return "not run"
    return "held" if status == 0 else "time limit" if status in TIMED_OUT else f"exit {status}"


def figure(name: str, found: Mapping[str, Any]) -> str:
    """The one figure of a section that people ask for first."""
    if name == "facts":
        return ", ".join(gpu["name"] for gpu in found["gpus"]) or "no GPU"
    if name == "digest":
        return f"{found['share_of_copy']:.1%} of the copy's read rate (target {found['target']:.0%})"
    if name == "check":
        waived = ", ".join(found["waived"]) or "nothing"
        return f"golden: {found['golden']}; resume: {'holds' if found['holds'] else 'fails'}, waived: {waived}"
    if name == "cpu":
        return f"{found.get('verdict', '')}: {found.get('sentence', '')}"
    return str(found.get("sentence", ""))


def main() -> int:
    """Write ``on_gpu.json`` and print the table."""
    folder, pipeline = Path(sys.argv[1]), sys.argv[2]
    rows = [line.split("\t") for line in (folder / "sections.tsv").read_text(encoding="utf-8").splitlines()]
    rows.sort(key=lambda row: list(FILES).index(row[0]))
    sections = [
        {"name": name, "status": int(status) if status else None, "seconds": int(seconds)}
        for name, status, seconds in rows
    ]
    found = {str(each["name"]): read(folder / FILES[str(each["name"])]) for each in sections}
    figures = {name: content for name, content in found.items() if isinstance(content, dict)}
    document = {
        "schema": "validator/on-gpu", "version": 2, "pipeline": pipeline, "sections": sections, "figures": figures,
        "report": read(folder / "check.json"),
    }  # fmt: skip
    (folder / "on_gpu.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"\n{'section':14} {'ended':12} {'seconds':>7}  figure")
    for name, status, seconds in rows:
        words = figure(name, figures[name]) if name in figures else ""
        print(f"{name:14} {ended(int(status) if status else None):12} {seconds:>7}  {words}")
    left = [name for name, status, _ in rows if not status]
    if left:
        print(f"\nFor what did not run: benchmarks/on_gpu.sh {' '.join(left)}")
    print(f"\nAll figures: {folder / 'on_gpu.json'}; a golden candidate, where it was recorded: {folder / 'golden'}")
    return 0 if all(each["status"] == 0 for each in sections) else 1


if __name__ == "__main__":
    raise SystemExit(main())
