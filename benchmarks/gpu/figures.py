"""Gathers what the sections of ``benchmarks/on_gpu.sh`` left in a folder into one file, and prints it as a table.

python benchmarks/gpu/figures.py FOLDER PIPELINE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

#: What ``timeout`` ends with where a section took too long.
TIMED_OUT = (124, 137)


def read(file: Path) -> Any:
    """The JSON of one section, ``None`` where it left none."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def ended(status: int) -> str:
    """A section's end in words."""
    return "held" if status == 0 else "time limit" if status in TIMED_OUT else f"exit {status}"


def figure(name: str, folder: Path) -> str:
    """The one figure of a section that people ask for first."""
    found = read(folder / f"{ {'golden-check': 'check'}.get(name, name) }.json")
    if not isinstance(found, dict):
        return ""
    if name == "facts":
        return ", ".join(gpu["name"] for gpu in found["gpus"]) or "no GPU"
    if name == "digest":
        return f"{found['share_of_copy']:.1%} of the copy's read rate (target {found['target']:.0%})"
    if name == "fingerprints":
        return f"{found['figures']['median']['share']:+.2%} of step time (target {found['target']:.0%})"
    if name == "overhead":
        return str(found.get("sentence", ""))
    return f"{found.get('verdict', '')}: {found.get('sentence', '')}"


def main() -> int:
    """Write ``on_gpu.json`` and print the table."""
    folder, pipeline = Path(sys.argv[1]), sys.argv[2]
    rows = [line.split("\t") for line in (folder / "sections.tsv").read_text(encoding="utf-8").splitlines()]
    sections = [{"name": name, "status": int(status), "seconds": int(seconds)} for name, status, seconds in rows]
    names = ("facts", "digest", "fingerprints", "overhead", "check", "cpu")
    figures = {name: content for name in names if (content := read(folder / f"{name}.json")) is not None}
    document = {"schema": "validator/on-gpu", "version": 1, "pipeline": pipeline, "sections": sections, **figures}
    (folder / "on_gpu.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"\n{'section':14} {'ended':12} {'seconds':>7}  figure")
    for name, status, seconds in rows:
        print(f"{name:14} {ended(int(status)):12} {seconds:>7}  {figure(name, folder)}")
    print(f"\nAll figures: {folder / 'on_gpu.json'}; a golden candidate, where it was recorded: {folder / 'golden'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
