"""The gates: trajectories in, outcomes out. Pure; no launch is started here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from validator.check.findings import divergence_row, spread_rows
from validator.check.plan import LaunchPlan
from validator.check.recorder import Proof
from validator.check.verdict import GOLDEN, RECORDER, REPEATABILITY, RESUME
from validator.check.waivers import WaiverBook
from validator.compare import compare
from validator.comparison import Comparison, resume_pairs
from validator.report.model import GateReport, Outcome
from validator.report.text import counted
from validator.trajectory.reader import Trajectory


def golden_gate(golden: Trajectory | None, reference: Trajectory, *, required: bool, where: str) -> GateReport:
    """Does the reference launch have the golden's bits? ``where`` says where a golden was looked for."""
    if golden is None:
        return GateReport(GOLDEN, Outcome.NO_BASELINE, required, f"There is no golden in {where}.")
    return _compared(GOLDEN, compare(golden, reference), required, "the golden", launches=1)


def repeatability_gate(
    reference: Trajectory, repeats: Sequence[Trajectory], *, required: bool, golden_launches: int = 0
) -> GateReport:
    """Do independent launches agree? ``golden_launches`` is how many gave the golden, where the reference equals it."""
    for repeat in repeats:
        gate = _compared(REPEATABILITY, compare(reference, repeat), required, "the first launch", launches=2)
        if gate.outcome is not Outcome.HOLDS:
            return gate
    launches = 1 + len(repeats) + golden_launches
    notes = (_would_have_seen(1 + len(repeats)),) if repeats else ()
    of_golden = f", {golden_launches} of them when the golden was recorded" if golden_launches else ""
    sentence = f"{counted(launches, 'independent launch', 'independent launches')} agree{of_golden}."
    return GateReport(REPEATABILITY, Outcome.HOLDS, required, sentence, launches=1 + len(repeats), notes=notes)


def rarest_seen(launches: int, confidence: float = 0.95) -> float:
    """The least probability of a deviation in one launch with which ``launches`` would have shown one at this
    confidence.

    They all agree with the probability ``(1 - p) ** launches``, which is solved for ``p``.
    """
    return float(1 - (1 - confidence) ** (1 / launches))


def _would_have_seen(launches: int) -> str:
    """What so many launches that agree say about rare deviations."""
    rarest = f"{rarest_seen(launches) * 100:.1f} %"
    return f"a deviation in {rarest} of launches or more would have been seen here with 95 % probability"


@dataclass(frozen=True, slots=True)
class Segment:
    """One launch of the resume chain and what it left behind."""

    plan: LaunchPlan
    trajectory: Trajectory


def resume_gate(reference: Trajectory, segments: Sequence[Segment], book: WaiverBook, *, required: bool) -> GateReport:
    """Does the chain of segments have the uninterrupted launch's bits, after every restore and at every later step?"""
    first: GateReport | None = None
    notes: list[str] = []
    leaves = 0
    for segment in segments:
        restore = segment.plan.restore
        end = reference.moments[-1].step if reference.moments else restore
        pairs = resume_pairs(reference, segment.trajectory, restore, segment.plan.kill_after or end)
        book.compared[restore] = [pair.observed for pair in pairs]
        comparison = compare(reference, segment.trajectory, pairs, partial(book.judge, restore))
        leaves += comparison.leaves_compared
        gate = _compared(RESUME, comparison, required, "the uninterrupted launch", launches=len(segments))
        notes.append(f"{segment.plan.name} ({segment.plan.purpose}): {_result(gate, comparison)}")
        if first is None and gate.outcome is not Outcome.HOLDS:
            first = gate
    waived = book.waived()
    notes += book.contradicted()
    restores = sum(1 for segment in segments if segment.plan.restore)
    what = f"{counted(restores, 'restore')} and all steps of the chain, {counted(leaves, 'leaf', 'leaves')}"
    but = ", but for what is waived" if waived else ""
    sentence = f"Equal to the uninterrupted launch: {what}{but}."
    found = first or GateReport(RESUME, Outcome.HOLDS, required, sentence, launches=len(segments))
    return GateReport(
        RESUME,
        found.outcome,
        required,
        found.sentence,
        len(segments),
        found.divergence,
        found.spread,
        waived,
        tuple(notes),
    )


def recorder_gate(proofs: Sequence[Proof], unexercised: Sequence[str]) -> GateReport:
    """Does the recorder see? It has to, whatever the policy says: what a blind one reports is nothing."""
    whole = sum(proofs, Proof())
    notes = (f"not exercised: {', '.join(unexercised)}",) if unexercised else ()
    outcome = Outcome.HOLDS if whole.holds else Outcome.ERROR
    return GateReport(RECORDER, outcome, True, whole.sentence, len(proofs), notes=(*whole.problems[1:], *notes))


def failed_gate(name: str, sentence: str, *, required: bool) -> GateReport:
    """A gate whose question could not be answered."""
    return GateReport(name, Outcome.ERROR, required, sentence)


def idle_gate(name: str, sentence: str, *, required: bool) -> GateReport:
    """A gate that did not run."""
    return GateReport(name, Outcome.NOT_RUN, required, sentence)


def _compared(name: str, comparison: Comparison, required: bool, other: str, launches: int) -> GateReport:
    if comparison.refused is not None:
        return GateReport(name, Outcome.ERROR, required, comparison.refused, launches)
    first = comparison.first
    if first is None:
        moments = counted(comparison.moments_compared, "moment")
        leaves = counted(comparison.leaves_compared, "leaf", "leaves")
        return GateReport(name, Outcome.HOLDS, required, f"Equal to {other}: {moments}, {leaves}.", launches)
    only_names = " Only names or order differ, not bits." if comparison.only_names else ""
    return GateReport(
        name=name,
        outcome=Outcome.FAILS,
        required=required,
        sentence=f"Differs from {other}: {first.sentence}.{only_names}",
        launches=launches,
        divergence=divergence_row(first),
        spread=spread_rows(comparison.spread),
    )


def _result(gate: GateReport, comparison: Comparison) -> str:
    if gate.outcome is Outcome.ERROR:
        return gate.sentence
    if gate.divergence is not None:
        return f"differs first at {gate.divergence.sentence}"
    waived = sum(map(len, comparison.waived.values()))
    but = f", but for {counted(waived, 'waived finding')}" if waived else ""
    return f"equal at {counted(comparison.moments_compared, 'moment')}{but}"
