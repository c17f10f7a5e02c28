"""Launches sets of packages, up to the known first divergence, and compares them with the first set."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import final

from validator.check.launches import Launched, Launches, against
from validator.check.plan import LaunchPlan
from validator.compare import compare
from validator.comparison import Comparison, MomentPair
from validator.diagnose.bisect.environments import Environments
from validator.diagnose.bisect.packages import Change, PackageSet, apply
from validator.diagnose.bisect.result import Tested
from validator.diagnose.bisect.search import Answer
from validator.errors import LaunchError, TrajectoryError
from validator.report.text import printable
from validator.trajectory.reader import Trajectory


@final
@dataclass(slots=True)
class Trials:
    """Launches of sets between ``before`` and another one. ``tested`` collects the outcomes of those in between.

    ``expected`` is the first set's trajectory, and ``last`` the step up to which others are launched, once known.
    """

    launches: Launches
    environments: Environments
    before: PackageSet
    expected: Trajectory | None = None
    last: int | None = None
    tested: list[Tested] = field(default_factory=list)

    def launch(
        self, name: str, purpose: str, changes: Iterable[Change], left: int, *, trace: int | None = None, keep: bool
    ) -> Launched:
        """Launch the first set with ``changes`` made, in an environment of its own, which stays where ``keep`` says so.

        About ``left`` launches are left, this one included. Raises ``LaunchError``.
        """
        python = self.environments.build(name, apply(self.before, changes).values())
        try:
            total = len(self.launches.rows) + left
            there = replace(self.launches.surroundings, python=python)
            launches = replace(self.launches, surroundings=there, total=total)
            plan = LaunchPlan(name, purpose, kill_after=trace or self.last, trace=trace)
            standing = None if self.expected is None else against(self.expected, "the first set")
            launched = launches.run(plan, standing)
        finally:
            if not keep:
                self.environments.discard(name)
        if not launched.proof.holds:
            raise LaunchError(launched.proof.sentence)
        return launched

    def test(self, name: str, changes: Collection[Change], purpose: str, left: int) -> tuple[Answer, Comparison | None]:
        """Launch the first set with ``changes`` made, and compare; what cannot be launched has no answer."""
        started = time.monotonic()
        comparison: Comparison | None = None
        try:
            launched = self.launch(name, purpose, changes, left, keep=False)
            comparison = self.compare(launched.trajectory)
            if comparison.refused is not None:
                answer, sentence = Answer.UNRESOLVED, comparison.refused
            elif comparison.first is not None:
                answer, sentence = Answer.DIFFERS, f"Differs, first at {comparison.first.sentence}."
            else:
                answer, sentence = Answer.SAME, "As the first set."
        except (LaunchError, TrajectoryError) as error:
            answer, sentence = Answer.UNRESOLVED, str(error)
        words = tuple(change.words for change in sorted(changes, key=lambda each: each.name))
        self.tested.append(Tested(name, words, answer, printable(sentence), time.monotonic() - started))
        return answer, comparison

    def keep(self, name: str, changes: Iterable[Change]) -> None:
        """Leave an environment for a person to look into; that it cannot be built is no news any more."""
        with contextlib.suppress(LaunchError):
            self.environments.build(name, apply(self.before, changes).values())

    def compare(self, observed: Trajectory) -> Comparison:
        """With the first set's trajectory, as far as launches go."""
        assert self.expected is not None
        if self.last is None:
            return compare(self.expected, observed)
        moments = [moment for moment in self.expected.moments if moment.step <= self.last]
        return compare(self.expected, observed, [MomentPair(moment, moment) for moment in moments])
