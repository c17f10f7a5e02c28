"""A result on disk, shown again in the forms that a person asks for."""

from __future__ import annotations

import sys
from pathlib import Path

from validator.check.out import write_whole
from validator.report.html import render_report
from validator.report.junit import render_junit
from validator.report.markdown import render_markdown
from validator.report.result import open_result
from validator.report.terminal import show


def render_result(path: Path, html: str | None, markdown: str | None, junit: str | None) -> int:
    """Write every form asked for, or print the report where none is. Exit code 0: showing a result judges nothing.

    Raises ``UsageError`` where ``path`` holds no result, ``LaunchError`` where a file cannot be written.
    """
    result = open_result(path)
    if html is not None:
        write_whole(Path(html), render_report(result.report, result.trajectories, problems=result.problems))
    if markdown is not None:
        write_whole(Path(markdown), render_markdown(result.report))
    if junit is not None:
        write_whole(Path(junit), render_junit(result.report))
    if html is markdown is junit is None:
        show(result.report, sys.stdout)
    for problem in result.problems:
        print(f"validator: {problem}", file=sys.stderr)
    return 0
