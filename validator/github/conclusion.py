"""From verdicts to what GitHub's check runs can say. A neutral check counts as passing, so it is never used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from validator.report.model import Report, Verdict
from validator.report.text import printable, shortened
from validator.report.words import MEANING

SUCCESS, FAILURE, ACTION_REQUIRED = "success", "failure", "action_required"

#: Of every other verdict it is a failure.
CONCLUSIONS: Mapping[Verdict, str] = {
    Verdict.PASS: SUCCESS,
    Verdict.REBASELINED: SUCCESS,
    Verdict.NO_BASELINE: ACTION_REQUIRED,
    Verdict.INCONCLUSIVE: ACTION_REQUIRED,
    Verdict.HOST_CHANGED: ACTION_REQUIRED,
}

#: Longest title; GitHub takes more, and nobody reads it.
_TITLE = 200


def conclusion_of(report: Report) -> str:
    """A stamped run is no gating result, whatever it found."""
    return FAILURE if report.stamps else CONCLUSIONS.get(report.verdict, FAILURE)


def title_of(report: Report) -> str:
    """One line for the list of checks."""
    if report.stamps:
        return "Not a gating result: the run is stamped"
    if report.verdict is Verdict.ERROR:
        return shortened(f"Error, which says nothing about the bits: {printable(report.sentence)}", _TITLE)
    return f"{report.verdict.value.replace('_', ' ')}: {MEANING[report.verdict]}"


def worst(conclusions: Sequence[str]) -> str:
    """The conclusion of the aggregate; success where there is nothing."""
    return next((each for each in (FAILURE, ACTION_REQUIRED) if each in conclusions), SUCCESS)
