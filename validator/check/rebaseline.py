"""The gate of a golden that travels with a change (DESIGN.md 8): is it valid, and is it what the change computes?"""

from __future__ import annotations

from validator.check.findings import divergence_row
from validator.check.verdict import REBASELINE
from validator.compare import compare
from validator.errors import ValidatorError
from validator.golden import LEAST_LAUNCHES, Golden, GoldenStore, measure_drift
from validator.golden.drift import check_finite
from validator.report.model import GateReport, Outcome
from validator.trajectory.reader import Trajectory


class InvalidGoldenError(ValidatorError):
    """The golden that a change brings breaks a rule; one sentence."""


def valid_golden(
    head: GoldenStore, pipeline: str, hardware_class: str, old: Golden | None, *, resume_is_off: bool
) -> Golden:
    """The golden that the change brings, where it keeps every rule against ``old``, the base revision's.

    Raises ``InvalidGoldenError`` with one sentence where it was removed, edited by hand, made on top of another golden,
    or rests on too little.
    """
    what = f"golden of {pipeline} on {hardware_class}"
    try:
        new = head.find(pipeline, hardware_class)
    except ValidatorError as error:
        raise InvalidGoldenError(f"This change brings a {what} that cannot be trusted: {error}") from error
    except Exception as error:  # whatever a forged file does to a reader, it is the file's fault
        raise InvalidGoldenError(
            f"This change brings a {what} that cannot be read ({type(error).__name__}); record it anew."
        ) from error
    if new is None:
        raise InvalidGoldenError(f"This change removes the {what}; put it back, or let an owner of golden/ merge it.")
    if old is not None and new.digest in old.record.lineage:
        return new  # a return to what was approved before, as git revert makes it
    record = new.record
    replaced, lineage = (None, ()) if old is None else (old.digest, old.record.lineage)
    if record.supersedes != replaced or record.ancestors != lineage:
        said = "none" if record.supersedes is None else record.supersedes[:12]
        there = "there is none" if replaced is None else f"there is {replaced[:12]}"
        raise InvalidGoldenError(
            f"This change's {what} supersedes {said}, and in the base revision {there}; record it anew on top of that."
        )
    if record.launches < LEAST_LAUNCHES or not (record.resume == "holds" or (record.resume == "off" and resume_is_off)):
        raise InvalidGoldenError(
            f"This change's {what} rests on {record.launches} launches and a resume gate that is {record.resume!r}; "
            f"needed are {LEAST_LAUNCHES} that agree, and 'holds'."
        )
    if new.trajectory.header.get("stamps") or not new.trajectory.complete:
        raise InvalidGoldenError(f"This change's {what} is of a stamped or incomplete launch; record it anew.")
    try:
        check_finite(new.trajectory)
        drift = {} if old is None else measure_drift(old.trajectory, new.trajectory)
    except ValidatorError as error:
        raise InvalidGoldenError(f"This change's {what} cannot be approved: {error}") from error
    if drift != dict(record.drift):
        raise InvalidGoldenError(f"This change's {what} tells another drift than its values have; record it anew.")
    return new


def rebaseline_gate(new: Golden, reference: Trajectory) -> GateReport:
    """Does the reference launch give the bits of the golden that the change brings?"""
    comparison = compare(new.trajectory, reference)
    if comparison.refused is not None:
        return GateReport(REBASELINE, Outcome.FAILS, True, comparison.refused, 1)
    if comparison.first is None:
        about = f"{new.digest[:12]}, {new.record.reason} ({new.record.approver})"
        return GateReport(
            REBASELINE, Outcome.HOLDS, True, f"Equal to the golden that comes with the change: {about}.", 1
        )
    return GateReport(
        name=REBASELINE,
        outcome=Outcome.FAILS,
        required=True,
        sentence=f"The golden that comes with the change is not what it computes: {comparison.first.sentence}.",
        launches=1,
        divergence=divergence_row(comparison.first),
    )


def invalid_gate(error: InvalidGoldenError) -> GateReport:
    """A golden that breaks a rule."""
    return GateReport(REBASELINE, Outcome.FAILS, True, str(error))


def settle(gate: GateReport, repeatability: GateReport | None, resume: GateReport | None, *, off: bool) -> GateReport:
    """The gate in the light of the others: a new golden is reproduced in two launches, and its resume holds.

    ``off`` says that the policy has no resume gate.
    """
    if gate.outcome is not Outcome.HOLDS:
        return gate
    if repeatability is None or repeatability.outcome is not Outcome.HOLDS:
        sentence = "The new golden was not reproduced in two independent launches."
    elif not off and (resume is None or resume.outcome is not Outcome.HOLDS):
        sentence = "The resume gate does not hold, so the new golden is not valid."
    else:
        return gate
    return GateReport(REBASELINE, Outcome.FAILS, True, sentence, gate.launches)
