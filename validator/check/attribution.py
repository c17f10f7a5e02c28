"""Who changed the bits: what is under test, or the host below it (DESIGN.md 4.4). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from validator.check.findings import divergence_row, spread_rows
from validator.check.verdict import ATTRIBUTION
from validator.compare import compare
from validator.environment import Environment, difference
from validator.report.model import GateReport, Outcome
from validator.trajectory.reader import Trajectory

#: At most this many differences between the two environments are listed.
_LISTED = 12


def attribution_gate(
    golden: Trajectory,
    candidate: Trajectory,
    base: Trajectory,
    names: tuple[str, str],
    differences: Sequence[str],
    thing: str = "image",
) -> GateReport:
    """The candidate differs from the golden: what does ``base``, the golden's own environment launched here, give?

    ``names`` are the base's and the candidate's, ``thing`` what differs between them. Holds where the base still gives
    the golden: the change did it. Fails where it does not: the host changed; a divergence is there where the candidate
    differs from the base as well.
    """
    base_name, candidate_name = names
    to_golden = compare(golden, base)
    if to_golden.refused is not None:
        return GateReport(ATTRIBUTION, Outcome.ERROR, False, to_golden.refused, 1)
    if to_golden.first is None:
        sentence = (
            f"The {thing} did it: {base_name} still gives the golden's bits on this host, {candidate_name} does not."
        )
        return GateReport(ATTRIBUTION, Outcome.HOLDS, False, sentence, 1, notes=tuple(differences))
    to_candidate = compare(base, candidate)
    if to_candidate.first is None:
        sentence = (
            f"The host did it: {base_name} gives the same bits here as {candidate_name}, and they are not the golden's."
        )
        return GateReport(ATTRIBUTION, Outcome.FAILS, False, sentence, 1, notes=tuple(differences))
    sentence = (
        f"The host changed, and the {thing} too: {base_name} gives neither the golden's bits here nor those of "
        f"{candidate_name}, from which it differs first at {to_candidate.first.sentence}."
    )
    return GateReport(
        ATTRIBUTION, Outcome.FAILS, False, sentence, 1, divergence_row(to_candidate.first),
        spread_rows(to_candidate.spread), notes=tuple(differences),
    )  # fmt: skip


def environment_notes(base: Environment, candidate: Environment) -> tuple[str, ...]:
    """How the two environments differ, as they were seen here, what can change bits first."""
    found = [
        f"{each.kind} {each.name}: {_shown(each.expected)} in the base, {_shown(each.observed)} here"
        for each in difference(base, candidate)
    ]
    more = [f"and {len(found) - _LISTED} more"] if len(found) > _LISTED else []
    return tuple(found[:_LISTED] + more)


def _shown(value: str | None) -> str:
    return "absent" if value is None else value
