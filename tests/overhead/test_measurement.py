"""The order of launches, and when it ends."""

from __future__ import annotations

import pytest

from tests.overhead.samples import COMPUTATION, RecordedLaunches
from validator.overhead.measurement import Mode, make_plan, measure
from validator.overhead.statistics import Decision
from validator.pipeline.overhead import OverheadPolicy

A, B, C = "deterministic", "default", "deterministic-without-fill"
QUIET = [1.0, 1.001, 0.999, 1.0, 1.001, 0.999, 1.0, 1.0]


def times(factor: float, noise: list[float] = QUIET) -> list[float]:
    return [0.1 * factor * value for value in noise]


def test_launches_alternate_and_stop_at_the_first_look_that_decides() -> None:
    launches = RecordedLaunches({A: times(1.30), B: times(1.0, QUIET[::-1])})
    found = measure(launches, make_plan(COMPUTATION, OverheadPolicy(), Mode.FULL, breakdown=False))
    assert launches.asked == [A, B, B, A, A, B, B, A]
    assert found.decision is Decision.FAILS
    assert found.estimate.pairs == 4
    assert found.estimate.overhead == pytest.approx(0.30, abs=0.01)
    assert [(row[0].arm, row[1].arm) for row in found.rounds] == [(A, B)] * 4


def test_what_straddles_the_budget_goes_on_to_the_limit_and_is_inconclusive() -> None:
    noise = [1.0, 1.1, 0.9, 1.05, 0.95, 1.1, 0.9, 1.0]
    launches = RecordedLaunches({A: times(1.1, noise), B: times(1.0)})
    found = measure(launches, make_plan(COMPUTATION, OverheadPolicy(), Mode.FULL, breakdown=False))
    assert found.decision is Decision.INCONCLUSIVE
    assert found.estimate.pairs == 8
    assert len(launches.asked) == 16


def test_looks_are_after_the_planned_numbers_of_pairs_only() -> None:
    # Five quiet pairs after one wild one: decided at a planned look, never in between.
    wild = [1.5, *QUIET[1:]]
    launches = RecordedLaunches({A: times(1.01, wild), B: times(1.0)})
    policy = OverheadPolicy(budget=0.4, least_pairs=4, most_pairs=8)
    found = measure(launches, make_plan(COMPUTATION, policy, Mode.FULL, breakdown=False))
    assert found.estimate.pairs in policy.looks


def test_the_third_arm_runs_in_every_round_and_profiles_come_last() -> None:
    launches = RecordedLaunches({A: times(1.3), B: times(1.0), C: times(1.1)})
    found = measure(launches, make_plan(COMPUTATION, OverheadPolicy(), Mode.FULL, without_fill=True))
    assert launches.asked[:6] == [A, B, C, C, B, A]
    assert launches.asked[-3:] == [f"profile {A}", f"profile {B}", f"profile {C}"]
    assert [estimate.overhead for estimate in found.estimates] == pytest.approx([0.3, 0.1], abs=0.01)


def test_a_first_look_is_two_pairs_without_profiles() -> None:
    launches = RecordedLaunches({A: times(1.3), B: times(1.0)})
    found = measure(launches, make_plan(COMPUTATION, OverheadPolicy(), Mode.QUICK))
    assert launches.asked == [A, B, B, A]
    assert found.profiles == ()


def test_noise_has_the_same_arm_twice_and_measures_all_pairs() -> None:
    again = f"{A}-again"
    launches = RecordedLaunches({A: times(1.0), again: times(1.0, QUIET[::-1])})
    plan = make_plan(COMPUTATION, OverheadPolicy(), Mode.NOISE)
    assert plan.arms[0].computation == plan.arms[1].computation
    assert plan.arms[0].settings == plan.arms[1].settings
    found = measure(launches, plan)
    assert len(launches.asked) == 16
    assert 0 < found.noise_floor < 0.01
