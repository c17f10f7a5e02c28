"""One bisection from its first launch to its answer."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import final

from validator.check.findings import divergence_row
from validator.check.launches import Launched, Launches
from validator.compare import compare
from validator.comparison import Comparison, Divergence
from validator.diagnose.bisect.environments import Environments
from validator.diagnose.bisect.packages import Change
from validator.diagnose.bisect.result import Bisected, Outcome
from validator.diagnose.bisect.search import Answer, expected_tests, smallest_flip
from validator.diagnose.bisect.sides import Sides
from validator.diagnose.bisect.trials import Trials
from validator.diagnose.localise import localise
from validator.errors import LaunchError, TrajectoryError
from validator.golden import GoldenStore
from validator.report.model import Localisation, LocalisationOutcome
from validator.report.text import counted, printable
from validator.trajectory.groups import Phase

#: Said to the person while it runs, one line each.
Say = Callable[[str], None]


@final
@dataclass(slots=True)
class Bisection:
    """Carries out one bisection. ``say`` is told how each test came out; ``traced`` asks for the module at the end.

    ``where`` are the words of a command line that ask for the place in which it launches.
    """

    sides: Sides
    launches: Launches
    goldens: GoldenStore
    say: Say
    where: tuple[str, ...] = ()
    traced: bool = True
    remarks: list[str] = field(default_factory=list)
    _trials: Trials = field(init=False)
    _started: float = field(init=False)

    def __post_init__(self) -> None:
        environments = Environments(
            self.launches.out / "environments", self.sides.python.base, self.sides.python.interpreter.version,
            self.sides.folders,
        )  # fmt: skip
        self._trials = Trials(self.launches, environments, self.sides.before)
        self._started = time.monotonic()
        self.remarks += self.sides.remarks

    def run(self) -> Bisected:
        """Find the changes; what cannot be found out is an outcome, not an exception."""
        changes = self.sides.changes
        if not changes:
            packages = counted(len(self.sides.before.packages), "package")
            return self._answer(Outcome.AGREE, f"The two sets are the same {packages}: there is nothing to bisect.")
        self.say(f"{counted(len(changes), 'package')} differ: {_listed(changes)}")
        try:
            comparison = self._both_ends(changes)
        except LaunchError as error:
            return self._answer(Outcome.UNKNOWN, str(error))
        if comparison.refused is not None:
            return self._answer(Outcome.UNKNOWN, comparison.refused)
        if comparison.first is None:
            moments = counted(comparison.moments_compared, "moment")
            leaves = counted(comparison.leaves_compared, "leaf", "leaves")
            made = counted(len(changes), "change")
            return self._answer(
                Outcome.AGREE,
                f"No package change flips the outcome: with all {made} made, {moments} and {leaves} are the same.",
            )
        return self._search(changes, comparison.first)

    def _both_ends(self, changes: tuple[Change, ...]) -> Comparison:
        """Launch the first set and the second one, whole."""
        trials, left = self._trials, 3 + expected_tests(len(changes))
        self.launches.total = left
        before = self._end("before", f"the first set, {self.sides.before.label}", (), left)
        trials.expected = before.trajectory
        self._look_at_golden(before)
        after = self._end("after", f"the second set, {self.sides.after.label}", changes, left - 1)
        return trials.compare(after.trajectory)

    def _end(self, name: str, what: str, changes: Collection[Change], left: int) -> Launched:
        try:
            return self._trials.launch(name, what, changes, left, keep=True)
        except (LaunchError, TrajectoryError) as error:
            raise LaunchError(f"{what[0].upper()}{what[1:]}, cannot be launched. {error}") from error

    def _search(self, changes: tuple[Change, ...], first: Divergence) -> Bisected:
        trials = self._trials
        trials.last = max(first.moment.step, 1)
        self.say(f"The second set differs, first at {first.sentence}; launches go up to step {trials.last}.")
        seen: dict[frozenset[Change], Comparison | None] = {}

        def test(subset: frozenset[Change], left: int) -> Answer:
            answer, seen[subset] = self._test(f"set-{len(seen) + 1:02}", subset, len(changes), left)
            return answer

        culprits = smallest_flip(changes, test)
        found = tuple(sorted(culprits, key=lambda change: change.name))
        rest = frozenset(changes) - culprits
        if rest and rest not in seen:
            _, seen[rest] = self._test("rest", rest, len(changes), 1)
        if not self._is_the_first_set_repeatable():
            return self._answer(
                Outcome.UNKNOWN,
                "The first set, launched twice, does not give the same bits, so no difference says anything about "
                f"packages; find out why first: validator check {self.launches.pipeline.name}.",
            )
        self._remark_on_rest(rest, seen)
        comparison = seen.get(culprits)
        divergence = first if comparison is None or comparison.first is None else comparison.first
        localisation = self._localise(found, divergence) if self.traced else None
        self._trials.keep("culprit", found)
        return self._answer(
            Outcome.FOUND,
            _sentence(found, len(changes)),
            culprits=found,
            divergence=divergence,
            localisation=localisation,
        )

    def _test(self, name: str, subset: frozenset[Change], of: int, left: int) -> tuple[Answer, Comparison | None]:
        purpose = f"{len(subset)} of {of} changes, about {counted(left, 'test')} left"
        answer, comparison = self._trials.test(name, subset, purpose, left)
        self.say(f"  {answer}: {_listed(sorted(subset, key=lambda change: change.name))}")
        if answer is Answer.UNRESOLVED:
            self.say(f"  {self._trials.tested[-1].sentence}")
        return answer, comparison

    def _is_the_first_set_repeatable(self) -> bool:
        """Seen where some other set gave its bits; else it is launched again."""
        if any(tested.answer is Answer.SAME for tested in self._trials.tested):
            return True
        answer, _ = self._trials.test("before-again", (), "the first set again, independently", 1)
        return answer is Answer.SAME

    def _remark_on_rest(self, rest: frozenset[Change], seen: dict[frozenset[Change], Comparison | None]) -> None:
        unresolved = [tested for tested in self._trials.tested if tested.answer is Answer.UNRESOLVED]
        if unresolved:
            sets = counted(len(unresolved), "set")
            self.remarks.append(f"{sets} in between could not be launched; what was found may be larger than need be.")
        if not rest:
            return
        without = "Without it" if len(rest) == len(self.sides.changes) - 1 else "Without them"
        others = f"the other {counted(len(rest), 'change')}" if len(rest) > 1 else "the other change"
        comparison = seen[rest]
        if comparison is None or comparison.refused is not None:
            self.remarks.append(f"{without}, {others} alone could not be launched.")
        elif comparison.first is not None:
            self.remarks.append(f"{without}, {others} also gave other bits: there is another cause as well.")
        else:
            self.remarks.append(f"{without}, {others} gave the bits of the first set.")

    def _look_at_golden(self, before: Launched) -> None:
        """Say which side is the golden's, where there is one."""
        pipeline = self.launches.pipeline.name
        try:
            golden = self.goldens.find(pipeline, self.launches.hardware_class)
            if golden is not None:
                first = compare(golden.trajectory, before.trajectory).first
                what = "computes the golden's bits" if first is None else "does not compute the golden's bits"
                self.remarks.append(f"{self.sides.before.label} {what}.")
        except TrajectoryError as error:
            self.remarks.append(f"The golden could not be compared with: {error}")

    def _localise(self, culprits: tuple[Change, ...], divergence: Divergence) -> Localisation:
        """Launch both sides once more, with a trace of the divergent step."""
        if divergence.moment.phase is not Phase.STEP:
            sentence = "The difference is there before the first step, in the initialisation or the data."
            return Localisation(LocalisationOutcome.BEFORE_STEP_1, sentence)
        step, trials = divergence.moment.step, self._trials
        try:
            trials.launch("before-traced", f"the first set, with a trace of step {step}", (), 2, trace=step, keep=False)
            purpose = f"with {counted(len(culprits), 'change')} made, with a trace of step {step}"
            trials.launch("culprit-traced", purpose, culprits, 1, trace=step, keep=False)
            expected, observed = (self.launches.folder(name) / "trace" for name in ("before-traced", "culprit-traced"))
            return localise(expected, observed)
        except (LaunchError, TrajectoryError) as error:
            return Localisation(LocalisationOutcome.UNKNOWN, f"The module is unknown: {error}", step)

    def _answer(
        self,
        outcome: Outcome,
        sentence: str,
        *,
        culprits: tuple[Change, ...] = (),
        divergence: Divergence | None = None,
        localisation: Localisation | None = None,
    ) -> Bisected:
        out = self.launches.out
        culprit = out / "environments" / "culprit" / "bin" / "python"
        words = ["validator", "check", self.launches.pipeline.name, "--python", str(culprit), *self.where]
        return Bisected(
            outcome=outcome,
            sentence=printable(sentence),
            pipeline=self.launches.pipeline.name,
            hardware_class=self.launches.hardware_class,
            before=self.sides.before.label,
            after=self.sides.after.label,
            changes=self.sides.changes,
            culprits=culprits,
            divergence=None if divergence is None else divergence_row(divergence),
            localisation=localisation,
            tests=tuple(self._trials.tested),
            remarks=tuple(map(printable, self.remarks)),
            launches=len(self.launches.rows),
            seconds=time.monotonic() - self._started,
            out=str(out),
            reproduce=shlex.join(words) if culprit.exists() else "",
        )


def _listed(changes: Collection[Change], shown: int = 8) -> str:
    words = [change.words for change in changes]
    more = f" and {len(words) - shown} more" if len(words) > shown else ""
    return ", ".join(words[:shown]) + more


def _sentence(culprits: tuple[Change, ...], of: int) -> str:
    if len(culprits) == 1:
        return f"One of {counted(of, 'package change')} flips the outcome: {culprits[0].words}."
    return f"{len(culprits)} of {counted(of, 'package change')} together flip the outcome: {_listed(culprits, 20)}."
