"""From the first check of a GPU pipeline to the pipeline that can have a golden: its waivers, written out.

    python benchmarks/gpu/candidate.py REPORT [--pipeline PIPELINE] [--out FOLDER] [--json FILE]

Upstream's two known defects of a resume (``rng/cpu``, and with several ranks ``rng/expert-parallel-rng``) leave
digests that only a GPU can tell, so the first check there ends in ``resume_broken`` and prints waivers with neither
reason nor link. Where nothing but these two leaves differs, FOLDER gets a copy of the pipeline with the printed
waivers, their reason and link those of nemotron-cpu, and the resume gate is judged anew with them, over the same
launches.

Exit status: 0 where the check's launches agree, its recorder sees, and the resume gate holds with these waivers.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from validator.check.gates import Segment, resume_gate
from validator.check.plan import reference, resume_chain
from validator.check.verdict import GOLDEN, RECORDER, REPEATABILITY, RESUME
from validator.check.waivers import WaiverBook
from validator.errors import UsageError, ValidatorError
from validator.pipeline import Pipeline, Waiver, find_project, load_pipeline
from validator.report.model import GateReport
from validator.trajectory.reader import Trajectory

#: The pipeline whose waivers say what the two defects are.
UNDERSTOOD = "nemotron-cpu"

_LEAF = re.compile(r"\s*leaf: (\".*\")")
_UNWRITTEN = re.compile(r"(\s*)(reason|link): .*")


def known_defects(root: Path) -> Mapping[str, Waiver]:
    """The waivers of the two known defects, by leaf."""
    return {waiver.name: waiver for waiver in load_pipeline(UNDERSTOOD, root).policy.waivers}


def written_out(suggested: str, known: Mapping[str, Waiver]) -> str:
    """Suggested waivers with the reason and the link of what is known. Raises ``UsageError`` for a leaf that is not."""
    lines: list[str] = []
    waiver: Waiver | None = None
    for line in suggested.splitlines():
        if leaf := _LEAF.fullmatch(line):
            name = json.loads(leaf[1])
            waiver = known.get(name)
            if waiver is None:
                raise UsageError(f"The leaf {name} differs after a restore, and is none of {', '.join(known)}.")
        unwritten = _UNWRITTEN.fullmatch(line)
        if unwritten is None or waiver is None:
            lines.append(line)
        else:
            lines.append(f"{unwritten[1]}{unwritten[2]}: {json.dumps(getattr(waiver, unwritten[2]))}")
    return "".join(f"{line}\n" for line in lines)


def candidate(report: Mapping[str, Any], pipeline: Pipeline, folder: Path, known: Mapping[str, Waiver]) -> Pipeline:
    """A copy of the pipeline in ``folder`` with the report's waivers, read anew. They stand at its end, where the
    policy and, if it has some, its waivers end.
    """
    copy = folder / pipeline.file.name
    waivers = written_out(str(report["waivers"]["suggested"]), known)
    copy.write_text(pipeline.file.read_text(encoding="utf-8") + waivers, encoding="utf-8")
    return load_pipeline(copy, folder)


def judged_anew(pipeline: Pipeline, out: Path) -> GateReport:
    """The resume gate of the check that ran in ``out``, with the waivers of ``pipeline``."""

    def of(launch: str) -> Trajectory:
        return Trajectory.open(out / "launches" / launch / "trajectory")

    segments = [Segment(plan, of(plan.name)) for plan in resume_chain(pipeline.policy)]
    book = WaiverBook(RESUME, pipeline.policy.waivers, date.today())
    return resume_gate(of(reference().name), segments, book, required=True)


def judge(report: Mapping[str, Any], pipeline: Pipeline, folder: Path, known: Mapping[str, Waiver]) -> dict[str, Any]:
    """What the check says about the machine, the known defects left out. Raises ``UsageError`` where that cannot be
    told.
    """
    gates = {gate["name"]: gate for gate in report["gates"]}
    for name, accepted in ((RECORDER, {"holds"}), (REPEATABILITY, {"holds"}), (GOLDEN, {"holds", "no_baseline"})):
        if gates[name]["outcome"] not in accepted:
            raise UsageError(f"{name}: {gates[name]['outcome']}. {gates[name]['sentence']}")
    resume = gates[RESUME]
    if resume["outcome"] not in {"holds", "fails"}:
        raise UsageError(f"{RESUME}: {resume['outcome']}. {resume['sentence']}")
    if resume["outcome"] == "fails" and not report["waivers"]["suggested"]:
        raise UsageError(f"The resume is broken in more than a known defect. {resume['sentence']}")
    copy = candidate(report, pipeline, folder, known)
    gate = judged_anew(copy, Path(report["out"]))
    return {
        "golden": gates[GOLDEN]["outcome"],
        "holds": str(gate.outcome) == "holds",
        "waived": sorted({finding.leaf for finding in gate.waived}),
        "pipeline": str(copy.file),
        "waivers": copy.file.read_text(encoding="utf-8").removeprefix(pipeline.file.read_text(encoding="utf-8")),
        "sentence": gate.sentence,
    }


def main() -> int:
    """Judge, print the waivers, and say how to go on."""
    parser = argparse.ArgumentParser(description="The waivers of a first check, written out.")
    parser.add_argument("report", type=Path)
    parser.add_argument("--pipeline", default="nemotron-h200")
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    root = find_project(Path.cwd())
    try:
        pipeline = load_pipeline(options.pipeline, root)
        try:
            report = json.loads(options.report.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{options.report} is no report of a check ({type(error).__name__}).") from error
        found = judge(report, pipeline, options.out, known_defects(root))
    except ValidatorError as error:
        print(error, file=sys.stderr)
        return 1
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if found["waivers"]:
        print(f"For the end of {pipeline.file}, on this kind of GPU (they are there in {found['pipeline']}):")
        print(found["waivers"])
    print(f"golden: {found['golden']}; with {', '.join(found['waived']) or 'nothing'} waived: {found['sentence']}")
    return 0 if found["holds"] else 1


if __name__ == "__main__":
    raise SystemExit(main())
