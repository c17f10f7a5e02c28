"""Recording: one launch for its trajectory, or all that a new golden takes (DESIGN.md 8)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from validator.check import gates, plan
from validator.check.launches import Launches, against
from validator.check.recorder import Proof
from validator.check.verdict import RESUME
from validator.check.waivers import WaiverBook
from validator.errors import LaunchError, UsageError, ValidatorError
from validator.golden import Approval, Golden, GoldenStore
from validator.pipeline import Gate, Pipeline, Requirement
from validator.report.model import GateReport, Outcome
from validator.trajectory.reader import Trajectory

#: Makes the module trace of step 1 of what has this trajectory, packed; ``None`` where it cannot be had.
TraceStep1 = Callable[[Launches, Trajectory], bytes | None]


class NotReproducibleError(ValidatorError):
    """Independent launches differ, or a resumed one does: nothing that could become golden. Nothing was written."""

    exit_code = 1


def record_trajectory(launches: Launches, target: Path) -> Trajectory:
    """Launch once, and put the trajectory at ``target`` whole or not at all. Raises ``LaunchError`` for a blind
    recorder.
    """
    launches.total = 1
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
    except OSError as error:
        raise LaunchError(f"{target} cannot be written ({error.strerror}); change --out.") from error
    try:
        launched = launches.run(plan.reference())
        _insist_on_sight([launched.proof])
        for name in launched.trajectory.files:
            shutil.copyfile(launched.trajectory.directory / name, part / name)
        os.replace(part, target)
    except OSError as error:
        raise LaunchError(
            f"{target} cannot be written ({error.strerror}); the launch's own trajectory is in "
            f"{launches.folder(plan.reference().name)}: copy it from there, or free space."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Trajectory.open(target)


def record_golden(
    pipeline: Pipeline,
    launches: Launches,
    store: GoldenStore,
    approval: Approval,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    trace: TraceStep1 | None = None,
) -> tuple[Golden, GateReport | None]:
    """Make what the pipeline computes here its golden: two launches that agree, finite values, a resume that holds.

    ``approval.launches`` and ``.resume`` are filled in from what was seen. ``trace`` makes the module trace that goes
    with the golden. Returns the golden and the resume gate (``None`` where the policy has none). Raises
    ``NotReproducibleError`` where bits differ, ``UsageError`` where a rule forbids it.
    """
    if launches.stamps:
        listed = ", ".join(launches.stamps)
        raise UsageError(f"A golden comes from launches as the pipeline has them; leave out {listed}.")
    chain = plan.resume_chain(pipeline.policy)
    if pipeline.policy.gates[Gate.RESUME] is Requirement.OFF:
        chain = ()
    launches.total = 2 + len(chain)
    first = launches.run(plan.reference())
    _insist_on_sight([first.proof])
    second = launches.run(plan.repeat(), against(first.trajectory, "the first launch"))
    repeatable = gates.repeatability_gate(first.trajectory, [second.trajectory], required=True)
    if repeatable.outcome is not Outcome.HOLDS:
        raise NotReproducibleError(f"Two launches do not agree, so neither becomes golden. {repeatable.sentence}")
    proofs = [second.proof]
    segments = []
    for segment in chain:
        launched = launches.run(segment)
        proofs.append(launched.proof)
        segments.append(gates.Segment(segment, launched.trajectory))
    _insist_on_sight(proofs)
    resume: GateReport | None = None
    if segments:
        book = WaiverBook(RESUME, pipeline.policy.waivers, now().date())
        resume = gates.resume_gate(first.trajectory, segments, book, required=True)
        if resume.outcome is not Outcome.HOLDS:
            hint = book.suggestion()
            waivers = f"\nWaivers for what was found, should it be known and understood:\n{hint}" if hint else ""
            raise NotReproducibleError(
                f"The resume gate does not hold, so nothing becomes golden. {resume.sentence}{waivers}"
            )
    seen = replace(approval, launches=2, resume="holds" if segments else "off")
    if trace is not None:
        launches.total += 1
    return store.write(first.trajectory, seen, trace(launches, first.trajectory) if trace is not None else None), resume


def _insist_on_sight(proofs: list[Proof]) -> None:
    for proof in proofs:
        if not proof.holds:
            raise LaunchError(proof.sentence)
