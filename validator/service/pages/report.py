"""The report page of one result: the same that ``validator report`` writes."""

from __future__ import annotations

from pathlib import Path

from validator.report.html.page import render_report
from validator.report.result import open_result


def report_page(folder: Path) -> str:
    """The page of the result in ``folder``; what can no longer be opened is said on it. Raises ``ValidatorError``."""
    result = open_result(folder)
    return render_report(result.report, result.trajectories, problems=result.problems)
