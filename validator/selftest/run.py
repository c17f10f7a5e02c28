"""Launches what a self-test needs, and judges each fault as soon as its launches are done.

Clean launches are shared: one uninterrupted run, one save in each mode, and one restore of it serve all faults that are
compared with them. Each fault has launches of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import final

from validator.check.launches import Launched, Launches
from validator.check.plan import STEPS_PAST_SAVE, LaunchPlan
from validator.check.verdict import RESUME
from validator.check.waivers import WaiverBook
from validator.compare import compare, resume_pairs
from validator.errors import LaunchError, TrajectoryError
from validator.faults import Fault, Scenario
from validator.faults.model import STEP
from validator.golden import Golden
from validator.pipeline import Save, SaveMode
from validator.selftest.judge import Side, became, judge
from validator.selftest.outcome import FaultResult, Outcome, SelfTestResult
from validator.selftest.witness import differ, read_account, touched_leaves

#: Called with each fault's result as soon as it is known.
Tell = Callable[[FaultResult], None]


@dataclass(frozen=True, slots=True)
class Wish:
    """Which faults are launched, and whether modules are looked for."""

    faults: tuple[Fault, ...]
    quick: bool = False
    localise: bool = True


@final
@dataclass
class SelfTest:
    """One self-test of one pipeline. ``golden``: the pipeline's own, where there is one."""

    launches: Launches
    golden: Golden | None
    wish: Wish
    tell: Tell = lambda _: None
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def run(self) -> SelfTestResult:
        """All clean launches and all faults. A launch that fails is the error of its fault alone."""
        started = time.monotonic()
        self.launches.total = self.planned
        clean_holds, clean = self._clean_control()
        results = tuple(self._one(fault) for fault in self.wish.faults) if clean_holds else ()
        return SelfTestResult(
            pipeline=self.launches.pipeline.name,
            hardware_class=self.launches.hardware_class,
            started=self.now.isoformat(timespec="seconds"),
            seconds=time.monotonic() - started,
            quick=self.wish.quick,
            clean_holds=clean_holds,
            clean=clean,
            faults=results,
            stamps=self.launches.stamps,
        )

    @property
    def planned(self) -> int:
        """How many launches it takes."""
        applicable = [fault for fault in self.wish.faults if self._applies(fault)]
        modes = {fault.mode for fault in applicable if fault.scenario in {Scenario.SAVE, Scenario.RESTORE}}
        own = sum(_LAUNCHES.get(fault.scenario, fault.launches) for fault in applicable)
        return 1 + (self.golden is None) + 2 * len(modes) + own

    def _clean_control(self) -> tuple[bool, str]:
        """Nothing is injected, and nothing may be found."""
        try:
            clean = self._reference
            other, name = (
                (self.golden.trajectory, "the golden")
                if self.golden is not None
                else (self._launch(LaunchPlan("clean-again", "clean, once more")).trajectory, "a second launch")
            )
            found = compare(other, clean.trajectory)
        except _MACHINERY as error:
            return False, f"The clean launch failed: {error}"
        if found.refused is not None:
            return False, found.refused
        if found.first is not None:
            return False, f"The clean launch differs from {name}: {found.first.sentence}."
        return True, f"The clean launch has the bits of {name}: {found.leaves_compared} leaves."

    @cached_property
    def _reference(self) -> Side:
        trace = STEP if self.wish.localise else None
        return self._side(self._launch(LaunchPlan("clean", "clean, uninterrupted", trace=trace)))

    @cached_property
    def _restored(self) -> dict[str, Side]:
        return {}

    def _clean_restore(self, mode: str) -> Side:
        """A clean save in this mode, restored: what spoilt saves and restores are compared with, by their accounts."""
        if mode not in self._restored:
            self._launch(self._saving(f"clean-save-{mode}", mode, "clean"))
            launched = self._launch(self._restoring(f"clean-restore-{mode}", f"clean-save-{mode}", "clean"))
            side = self._side(launched)
            pairs = resume_pairs(self._reference.trajectory, side.trajectory, STEP)
            found = compare(self._reference.trajectory, side.trajectory, pairs, partial(self._book.judge, STEP))
            if not found.equal:
                told = found.refused or (found.first.sentence if found.first else "")
                raise LaunchError(f"The clean restore ({mode}) already differs: {told}.")
            self._restored[mode] = side
        return self._restored[mode]

    def _one(self, fault: Fault) -> FaultResult:
        started, before = time.monotonic(), len(self.launches.rows)
        if not self._applies(fault):
            needs = " and ".join(fault.needs)
            sentence = f"It needs {needs}, which the pipeline does not have."
            result = became(fault, Outcome.NOT_APPLICABLE, sentence)
        else:
            try:
                result = self._carry_out(fault)
            except _MACHINERY as error:
                result = became(fault, Outcome.ERROR, str(error))
        result = replace(result, seconds=time.monotonic() - started, launches=len(self.launches.rows) - before)
        self.tell(result)
        return result

    def _applies(self, fault: Fault) -> bool:
        arguments = self.launches.pipeline.computation.arguments
        return all(name in arguments and arguments[arguments.index(name) + 1 :][:1] != ("1",) for name in fault.needs)

    def _carry_out(self, fault: Fault) -> FaultResult:
        match fault.scenario:
            case Scenario.RUN:
                return self._in_a_run(fault)
            case Scenario.SAVE:
                return self._in_a_save(fault)
            case Scenario.RESTORE:
                return self._in_a_restore(fault)
            case Scenario.REPEAT:
                return self._in_two_runs(fault)
            case Scenario.RARE:
                return self._in_some_of_several(fault)
            case Scenario.PROOF:
                return self._in_the_recorder(fault)
            case Scenario.BREAKDOWN:
                return self._in_the_machinery(fault)

    def _in_a_run(self, fault: Fault) -> FaultResult:
        observed = self._with(fault, self._running(fault.name, fault.does))
        return judge(fault, self._reference, observed)

    def _in_a_save(self, fault: Fault) -> FaultResult:
        clean = self._clean_restore(fault.mode)
        self._launch(self._saving(f"{fault.name}-save", fault.mode, fault.does), fault)
        launched = self._launch(self._restoring(fault.name, f"{fault.name}-save", "what was saved, restored"))
        return self._against_the_reference(fault, clean, self._side(launched))

    def _in_a_restore(self, fault: Fault) -> FaultResult:
        clean = self._clean_restore(fault.mode)
        observed = self._with(fault, self._restoring(fault.name, f"clean-save-{fault.mode}", fault.does))
        return self._against_the_reference(fault, clean, observed)

    def _against_the_reference(self, fault: Fault, clean: Side, observed: Side) -> FaultResult:
        """Compared with the uninterrupted run; whether bits changed is told by the clean restore's account."""
        pairs = resume_pairs(self._reference.trajectory, observed.trajectory, STEP)
        expected = replace(self._reference, account=clean.account)
        return judge(fault, expected, observed, pairs, partial(self._book.judge, STEP))

    def _in_two_runs(self, fault: Fault) -> FaultResult:
        first = self._with(fault, self._running(f"{fault.name}-1", fault.does))
        second = self._with(fault, self._running(f"{fault.name}-2", f"{fault.does}; again"))
        return judge(fault, first, second)

    def _in_some_of_several(self, fault: Fault) -> FaultResult:
        """Judged against how often it fired, which its launches' own accounts tell."""
        clean, judged, fired = self._reference, [], 0
        for number in range(1, fault.launches + 1):
            observed = self._with(fault, self._running(f"{fault.name}-{number}", fault.does))
            fired += differ(clean.account, observed.account)
            judged.append(judge(fault, clean, observed))
        caught = [each for each in judged if each.outcome in {Outcome.CAUGHT, Outcome.CAUGHT_AND_NAMED}]
        rate = 1 - (1 - fault.probability) ** fault.launches
        sentence = (
            f"It fired in {fired} of {fault.launches} launches and was caught in {len(caught)}; with p = "
            f"{fault.probability:g} a launch, {fault.launches} launches show it with {rate:.1%}."
        )
        if len(caught) != fired:
            return became(fault, Outcome.MISSED, sentence)
        if not fired:
            return became(fault, Outcome.NO_EFFECT, sentence)
        worst = next((each for each in caught if each.outcome is Outcome.CAUGHT), caught[0])
        return replace(worst, sentence=sentence)

    def _in_the_recorder(self, fault: Fault) -> FaultResult:
        """The launch ends, and the proof of its recorder must fail."""
        try:
            launched = self._launch(LaunchPlan(fault.name, fault.does), fault)
        except (LaunchError, TrajectoryError) as error:
            return self._found(fault, str(error))
        if launched.proof.holds:
            return became(fault, Outcome.MISSED, launched.proof.sentence)
        return self._found(fault, launched.proof.sentence)

    def _in_the_machinery(self, fault: Fault) -> FaultResult:
        """The launch must end as an error, within a short limit."""
        policy = self.launches.pipeline.policy
        limit = min(policy.launch_seconds, _SHORT_LIMIT)
        pipeline = replace(self.launches.pipeline, policy=replace(policy, launch_seconds=limit))
        try:
            self._launch(LaunchPlan(fault.name, fault.does), fault, replace(self.launches, pipeline=pipeline))
        except LaunchError as error:
            return self._found(fault, str(error))
        return became(fault, Outcome.MISSED, "The launch came to its end.")

    @staticmethod
    def _found(fault: Fault, sentence: str) -> FaultResult:
        return replace(became(fault, Outcome.CAUGHT_AND_NAMED, sentence), found=f"error of the {fault.gate}")

    # Launches.

    def _running(self, name: str, purpose: str) -> LaunchPlan:
        trace = STEP if self.wish.localise else None
        return LaunchPlan(name, purpose, kill_after=STEP + 1 if self.wish.quick else None, trace=trace)

    @staticmethod
    def _saving(name: str, mode: str, purpose: str) -> LaunchPlan:
        save = Save(STEP, SaveMode(mode))
        return LaunchPlan(name, f"{purpose}; saves step {STEP}", save=save, kill_after=STEP + STEPS_PAST_SAVE)

    def _restoring(self, name: str, saved_by: str, purpose: str) -> LaunchPlan:
        return LaunchPlan(
            name, f"{purpose}; restores step {STEP}", STEP, saved_by,
            kill_after=STEP + 1 if self.wish.quick else None,
        )  # fmt: skip

    def _with(self, fault: Fault, plan: LaunchPlan) -> Side:
        return self._side(self._launch(plan, fault))

    def _side(self, launched: Launched) -> Side:
        scratch, ranks = self.launches.folder(launched.plan.name), self.launches.pipeline.computation.world_size
        trace = scratch / "trace" if launched.plan.trace is not None else None
        return Side(launched.trajectory, read_account(scratch, ranks), trace, touched_leaves(scratch, ranks))

    def _launch(self, plan: LaunchPlan, fault: Fault | None = None, launches: Launches | None = None) -> Launched:
        """One launch. With a fault it is stamped, and gets the fault's variables."""
        own = launches or self.launches
        switches: dict[str, object] = {**own.switches, "witness": True}
        stamps, surroundings = own.stamps, own.surroundings
        if fault is not None:
            switches["fault"] = fault.name
            stamps = (*stamps, f"fault {fault.name}")
            surroundings = replace(surroundings, variables={**surroundings.variables, **fault.variables})
        own = replace(own, switches=switches, stamps=stamps, surroundings=surroundings, rows=self.launches.rows)
        return own.run(plan)

    @cached_property
    def _book(self) -> WaiverBook:
        return WaiverBook(RESUME, self.launches.pipeline.policy.waivers, self.now.date())


_MACHINERY = (LaunchError, TrajectoryError, OSError)

#: A launch that hangs on purpose is given up after this many seconds.
_SHORT_LIMIT = 60

#: Launches of its own that a fault of each scenario takes; of a rare one, as many as it says.
_LAUNCHES: Mapping[Scenario, int] = {
    Scenario.RUN: 1,
    Scenario.SAVE: 2,
    Scenario.RESTORE: 1,
    Scenario.REPEAT: 2,
    Scenario.PROOF: 1,
    Scenario.BREAKDOWN: 1,
}
