"""The sequence of a measurement: rounds of launches, alternated A B B A, until the sequential rule decides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Protocol

from validator.overhead.arms import Arm, default_arm, deterministic_arm, without_fill_arm
from validator.overhead.statistics import Decision, Estimate, estimate, noise_floor
from validator.overhead.timings import LaunchTiming
from validator.pipeline import Computation
from validator.pipeline.overhead import OverheadPolicy

#: Pairs of a first look.
QUICK_PAIRS = 2


class Mode(StrEnum):
    """How much is measured, and of what."""

    FULL = "full"
    QUICK = "quick"  # a first look: two pairs, no decision that gates
    NOISE = "noise"  # both arms the same: the machine's noise floor


class MeasuredLaunches(Protocol):
    """What starts the launches (``Bench``)."""

    def time(self, arm: Arm, number: int, total: int) -> LaunchTiming:
        """One timed launch."""
        ...

    def profile(self, arm: Arm, total: int) -> list[dict[str, Any]]:
        """One profiled launch: what each rank saw."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured: ``arms[0]`` over ``arms[1]``; every further arm is measured over ``arms[1]`` as well."""

    mode: Mode
    arms: tuple[Arm, ...]
    looks: tuple[int, ...]
    budget: float
    breakdown: bool

    @property
    def launches(self) -> int:
        """How many launches there are at most."""
        return len(self.arms) * self.looks[-1] + (len(self.arms) if self.breakdown else 0)


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured: ``rounds[r][a]`` is arm ``a``'s launch of round ``r``.

    ``estimates[0]`` is that of the first arm over the second, the next ones those of further arms. ``profiles`` are, by
    arm, what each rank saw; empty without a breakdown.
    """

    plan: Plan
    rounds: tuple[tuple[LaunchTiming, ...], ...]
    estimates: tuple[Estimate, ...]
    profiles: tuple[list[dict[str, Any]], ...] = ()

    @property
    def estimate(self) -> Estimate:
        return self.estimates[0]

    @property
    def decision(self) -> Decision:
        return self.estimate.decide(self.plan.budget)

    @property
    def noise_floor(self) -> float:
        """The least overhead that could be told from none here, had all pairs been measured."""
        looks = self.plan.looks
        return noise_floor(self.estimate.spread, looks[-1], len(looks))


def make_plan(
    computation: Computation, policy: OverheadPolicy, mode: Mode, *, without_fill: bool = False, breakdown: bool = True
) -> Plan:
    """The plan of a measurement. A noise measurement has the deterministic arm twice, and no breakdown.

    A switch meant for one arm alone (a known slowdown) goes to the first one.
    """
    first = deterministic_arm(computation)
    second = default_arm(computation, policy)
    if mode is Mode.NOISE:
        second = replace(first, name=f"{first.name}-again", switches={"slowdown": 0.0})
        return Plan(mode, (first, second), policy.looks, policy.budget, breakdown=False)
    second = replace(second, switches={"slowdown": 0.0})
    arms = (first, second, *((without_fill_arm(computation),) if without_fill else ()))
    looks = (QUICK_PAIRS,) if mode is Mode.QUICK else policy.looks
    return Plan(mode, arms, looks, policy.budget, breakdown and mode is not Mode.QUICK)


def measure(bench: MeasuredLaunches, plan: Plan) -> Measurement:
    """Carry out a plan. Raises ``LaunchError`` where a timed or profiled launch fails."""
    rounds: list[tuple[LaunchTiming, ...]] = []
    estimates: tuple[Estimate, ...] = ()
    for number in range(1, plan.looks[-1] + 1):
        forward = number % 2 == 1
        order = plan.arms if forward else plan.arms[::-1]
        timings = [bench.time(arm, number, plan.launches) for arm in order]
        rounds.append(tuple(timings if forward else timings[::-1]))
        if number in plan.looks:
            estimates = estimates_of(rounds, plan.looks)
            decided = estimates[0].decide(plan.budget) is not Decision.INCONCLUSIVE
            if decided and plan.mode is not Mode.NOISE:  # the noise floor is that of all pairs
                break
    profiles = tuple(bench.profile(arm, plan.launches) for arm in plan.arms) if plan.breakdown else ()
    return Measurement(plan, tuple(rounds), estimates, profiles)


def estimates_of(rounds: Sequence[Sequence[LaunchTiming]], looks: Sequence[int]) -> tuple[Estimate, ...]:
    """Estimates of each arm but the second over the second, from their log-ratios round by round, at the look after so
    many rounds.
    """
    look = looks.index(len(rounds)) + 1
    compared = [index for index in range(len(rounds[0])) if index != 1]
    return tuple(estimate([log_ratio(row[index], row[1]) for row in rounds], look, len(looks)) for index in compared)


def log_ratio(over: LaunchTiming, base: LaunchTiming) -> float:
    """Natural logarithm of the ratio of two launches' median step times."""
    return math.log(over.median / base.median)
