"""Launches again, up to the step at which two sides part, with a trace of that step: where in the code do they part?

Both sides are launched where both can be. Where the golden's cannot, the trace of step 1 that it may bring serves for
what differs there. Nothing that happens here changes a verdict.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import final

from validator.check.arguments import launch_variables
from validator.check.launches import Launched, Launches
from validator.check.order import Order, Parted
from validator.check.plan import LaunchPlan
from validator.check.verdict import ATTRIBUTION, GOLDEN, RESUME
from validator.check.waivers import WaiverBook
from validator.compare import compare
from validator.comparison import MomentPair, resume_pairs
from validator.diagnose.localise import localise
from validator.execute.kit import surround
from validator.golden import Golden
from validator.report.model import Divergence, Localisation, LocalisationOutcome, Outcome
from validator.trajectory.groups import Moment, Phase
from validator.trajectory.reader import Trajectory

#: Pairs of launches of the same thing, at most, until two of them differ within the traced step.
PAIRS = 3

#: Outcomes that say where in the code it is.
_FOUND = LocalisationOutcome.MODULE


@final
class Relaunch:
    """Localises the failing gates of one check with launches of its own."""

    def __init__(self, order: Order, launches: Launches) -> None:
        self._order = order
        self._launches = launches
        self._waived = frozenset(waiver.name for waiver in order.pipeline.policy.waivers if waiver.gate == RESUME)

    def __call__(self, parted: Parted) -> Localisation:
        """Where in the code the two sides of a failing gate part. Raises ``LaunchError`` or ``TrajectoryError`` where
        that cannot be found out.
        """
        found = parted.gate.divergence
        assert found is not None
        moment = Moment.parse(found.moment)
        if moment.phase is not Phase.STEP:
            return _before_any_step(found, moment)
        if parted.gate.name == RESUME:
            return self._resumed(parted)
        if parted.gate.name == GOLDEN:
            return self._golden(parted, moment.step)
        if parted.gate.name == ATTRIBUTION and self._launches.base is not None:
            return self._both(self._launches.base, moment.step, ATTRIBUTION)
        return self._repeated(moment.step)

    def _repeated(self, step: int) -> Localisation:
        """The same thing, launched in pairs until a pair differs within the step."""
        answers: list[Localisation] = []
        first: Launched | None = None
        for number in range(1, PAIRS + 1):
            if first is None:
                self._announce(self._launches, 2)
                first = self._run(self._launches, _fresh(f"trace-repeat-{number}a", step), "one of two equal launches")
            again = self._run(self._launches, _fresh(f"trace-repeat-{number}b", step), "the same again")
            answers.append(self._answer(self._trace(first), self._trace(again), first, again, step))
            if answers[-1].outcome is _FOUND:
                break
            earliest = compare(first.trajectory, again.trajectory).first
            if earliest is not None and 0 < earliest.moment.step < step:
                step, first = earliest.moment.step, None  # it begins elsewhere each time
        shown = [answer for answer in answers if answer.outcome is not LocalisationOutcome.VANISHED]
        best = next((answer for answer in shown if answer.outcome is _FOUND), (shown or answers)[0])
        return replace(best, attempts=len(answers), shown=len(shown))

    def _golden(self, parted: Parted, step: int) -> Localisation:
        golden = parted.golden
        assert golden is not None
        if step == 1 and golden.trace is not None:
            observed = self._run(self._launches, _fresh("trace-observed", 1), "what is under test")
            return self._answer(golden.trace, self._trace(observed), golden, observed, 1)
        attribution = parted.attribution
        if self._launches.base is not None and attribution is not None and attribution.outcome is Outcome.HOLDS:
            return self._both(self._launches.base, step, GOLDEN)
        own = self._own_software()
        if own is None:
            return _unknown(step, "the golden's side cannot be launched here")
        return self._both(own, step, GOLDEN, golden)

    def _both(self, other: Launches, step: int, gate: str, golden: Golden | None = None) -> Localisation:
        """Two environments here; where a golden is given, ``other`` has to give its bits."""
        self._announce(other, 2)
        expected = self._run(other, _fresh(f"trace-{gate}-expected", step), "the golden's side")
        if golden is not None and not _has_the_bits_of(golden.trajectory, expected.trajectory):
            return _unknown(step, "without what this check changes, the golden's bits do not come out here either")
        observed = self._run(self._launches, _fresh(f"trace-{gate}-observed", step), "what is under test")
        return self._answer(self._trace(expected), self._trace(observed), expected, observed, step)

    def _resumed(self, parted: Parted) -> Localisation:
        """The uninterrupted side, and the segment in which the difference begins, restored from the same checkpoint."""
        reference = parted.launched[0].trajectory
        book = WaiverBook(RESUME, self._order.pipeline.policy.waivers, parted.today)
        for segment in (each for each in parted.launched if each.plan.name.startswith("resume-")):
            restore = segment.plan.restore
            pairs = resume_pairs(reference, segment.trajectory, restore)
            first = compare(reference, segment.trajectory, pairs, partial(book.judge, restore)).first
            if first is not None and first.moment.phase is Phase.STEP:
                return self._restored(segment.plan, first.moment.step)
        return _unknown(None, "no launch of the chain shows the difference any more")

    def _restored(self, segment: LaunchPlan, step: int) -> Localisation:
        save = segment.save if segment.save is not None and segment.save.step < step else None
        self._announce(self._launches, 2)
        expected = self._run(self._launches, _fresh("trace-uninterrupted", step), "the uninterrupted side")
        plan = replace(
            segment, name=f"trace-{segment.name}", save=save, kill_after=step, trace=step,
            purpose=f"the resumed side: {segment.purpose.partition(',')[0]}",
        )  # fmt: skip
        observed = self._run(self._launches, plan, plan.purpose)
        return self._answer(self._trace(expected), self._trace(observed), expected, observed, step, self._waived)

    def _answer(
        self, expected: Path, observed: Path, left: Launched | Golden, right: Launched, step: int,
        ignored: frozenset[str] = frozenset(),
    ) -> Localisation:  # fmt: skip
        found = localise(expected, observed, ignored)
        if found.outcome is LocalisationOutcome.VANISHED:
            found = _outside(left.trajectory, right.trajectory, step, ignored) or found
        return replace(found, attempts=1, shown=int(found.outcome is not LocalisationOutcome.VANISHED))

    def _own_software(self) -> Launches | None:
        """The same without variables, switches and plugin of this check, or else without its ``--python`` and
        ``--megatron``; ``None`` where nothing is changed that can be left out.
        """
        order = self._order
        applied = bool(order.changes or order.switches or order.plugin)
        if order.place.image is not None or not (applied or order.python or order.megatron):
            return None
        python, megatron = (order.python, order.megatron) if applied else (None, None)
        interpreter = self._launches.executor.find_interpreter(python, megatron)
        variables = launch_variables(order.pipeline.computation)
        surroundings = surround(order.out / "own-kit", interpreter, megatron, variables, {})
        return replace(self._launches, surroundings=surroundings, stamps=(), switches={}, rows=self._launches.rows)

    def _announce(self, launches: Launches, number: int) -> None:
        for each in (launches, self._launches):
            each.total = len(each.rows) + number

    def _run(self, launches: Launches, plan: LaunchPlan, side: str) -> Launched:
        launches.total = max(launches.total, len(launches.rows) + 1)
        return launches.run(replace(plan, purpose=f"traces step {plan.trace} of {side}"))

    def _trace(self, launched: Launched) -> Path:
        return self._launches.folder(launched.plan.name) / "trace"


def _fresh(name: str, step: int) -> LaunchPlan:
    return LaunchPlan(name, "", kill_after=step, trace=step)


def _outside(expected: Trajectory, observed: Trajectory, step: int, ignored: frozenset[str]) -> Localisation | None:
    """The traces agree; do the trajectories of the same two launches?"""
    moment = Moment(step)
    pairs = [MomentPair(moment, moment)]
    first = compare(expected, observed, pairs, lambda each: each.name if each.name in ignored else None).first
    if first is None:
        return None
    group, leaf = str(first.group or ""), first.leaf.name if first.leaf is not None else ""
    return Localisation(
        LocalisationOutcome.GROUP,
        f"The difference shows again after step {step}, rank {first.rank}: {first.name}. Every traced call agrees, so "
        "no module made it.",
        step, first.rank, phase="end", group=group, leaf=leaf,
    )  # fmt: skip


def _has_the_bits_of(golden: Trajectory, launched: Trajectory) -> bool:
    return all(golden.moment_digest(moment) == launched.moment_digest(moment) for moment in launched.moments)


def _unknown(step: int | None, why: str) -> Localisation:
    sentence = f"The earliest leaf that differs is the one above; the module is unknown: {why}."
    return Localisation(LocalisationOutcome.UNKNOWN, sentence, step)


def _before_any_step(found: Divergence, moment: Moment) -> Localisation:
    """A difference that is there before a step was trained needs no trace."""
    leaf = f"{found.group}/{found.leaf}" if found.leaf else found.group
    if moment.step == 0:
        outcome = LocalisationOutcome.BEFORE_STEP_1
        when = "The difference is there before step 1: in the initialisation"
    else:
        outcome = LocalisationOutcome.GROUP
        when = f"The difference is in what was restored of step {moment.step}, before any step"
    sentence = f"{when}, rank {found.rank}, {leaf}. No module made it."
    return Localisation(outcome, sentence, moment.step, found.rank, phase="start", group=found.group, leaf=found.leaf)
