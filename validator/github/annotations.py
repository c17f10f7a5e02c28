"""Annotations: a sentence at the line that changed the environment, where that can be told."""

from __future__ import annotations

import re
from collections.abc import Mapping

from validator.report.harmless import harmless
from validator.report.model import EnvironmentDifferenceRow, Report, Verdict
from validator.report.text import shortened

#: GitHub takes this many in one request.
BATCH = 50

#: More than this are not looked at by anyone.
MOST = 200

_MOST_MESSAGE = 2000

Annotation = dict[str, object]


def annotations_of(report: Report, files: Mapping[str, str], pipeline_file: str) -> list[Annotation]:
    """For a report that is not green: one a difference that can change bits and whose line is found.

    ``files`` are the texts of the change's files by path; ``pipeline_file`` is the pipeline's path.
    """
    if report.verdict in {Verdict.PASS, Verdict.REBASELINED}:
        return []
    clean = harmless(report)
    level = "failure" if clean.verdict.exit_code == 1 else "warning"
    found = []
    for row in clean.environment_difference:
        place = _place(row, files, pipeline_file) if row.can_change_bits else None
        if place is None:
            continue
        path, line = place
        message = (
            f"{row.name}: {row.expected or 'absent'} when the golden was recorded, {row.observed or 'absent'} here."
        )
        found.append(
            {
                "path": path,
                "start_line": line,
                "end_line": line,
                "annotation_level": level,
                "title": shortened(f"{clean.pipeline}: {clean.verdict.value}", 200),
                "message": shortened(message, _MOST_MESSAGE),
            }
        )
    return found[:MOST]


def _place(row: EnvironmentDifferenceRow, files: Mapping[str, str], pipeline_file: str) -> tuple[str, int] | None:
    if row.kind in {"arguments", "variables", "computation"}:
        name = row.name if row.kind != "arguments" else "--" + row.name.replace("_", "-")
        if pipeline_file not in files:
            return None
        return _line(pipeline_file, files[pipeline_file], re.escape(name))
    if row.kind != "packages" or row.observed is None:
        return None
    spelled = "[-_.]+".join(map(re.escape, re.split(r"[-_.]+", row.name)))
    version = re.escape(row.observed.partition("+")[0])
    for path, text in files.items():
        found = _line(path, text, rf"(?i:\b{spelled})\b[^\n]*{version}(?![0-9.])")
        if found is not None:
            return found
    return None


def _line(path: str, text: str, pattern: str) -> tuple[str, int] | None:
    for number, line in enumerate(text.splitlines(), start=1):
        if re.search(pattern, line):
            return path, number
    return None
