"""The interval and the sequential rule, against a worked example and against known truth."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from validator.overhead.statistics import Decision, estimate, noise_floor

# Student's t: the 0.975 quantile with 3 degrees of freedom is 3.182446 (any table).
T3 = 3.182446305284263


def test_a_worked_example() -> None:
    values = [0.08, 0.10, 0.12, 0.10]
    found = estimate(values, looks=1)
    spread = math.sqrt((0.02**2 + 0.02**2) / 3)
    half = T3 * spread / 2
    assert found.overhead == pytest.approx(math.expm1(0.10), rel=1e-12)
    assert found.interval.lower == pytest.approx(math.expm1(0.10 - half), rel=1e-9)
    assert found.interval.upper == pytest.approx(math.expm1(0.10 + half), rel=1e-9)
    assert found.strict == found.interval
    assert found.spread == pytest.approx(spread, rel=1e-12)
    assert noise_floor(spread, 4, 1) == pytest.approx(math.expm1(half), rel=1e-9)


def test_more_looks_make_the_deciding_interval_wider_and_the_reported_one_no_wider() -> None:
    values = [0.08, 0.10, 0.12, 0.10]
    one, three = estimate(values, looks=1), estimate(values, looks=3)
    assert three.interval == one.interval
    assert three.strict.level == pytest.approx(1 - 0.05 / 3)
    assert three.strict.lower < one.strict.lower < one.strict.upper < three.strict.upper


@pytest.mark.parametrize(
    ("values", "decision"),
    [
        ([0.010, 0.011, 0.012, 0.011], Decision.HOLDS),
        ([0.200, 0.201, 0.202, 0.201], Decision.FAILS),
        ([0.05, 0.15, 0.09, 0.10], Decision.INCONCLUSIVE),
        ([0.0] * 4, Decision.HOLDS),
    ],
)
def test_it_holds_below_fails_above_and_is_open_across(values: list[float], decision: Decision) -> None:
    assert estimate(values, looks=3).decide(0.10) is decision


def test_the_order_of_the_arms_only_changes_the_sign() -> None:
    values = [0.08, 0.10, 0.12, 0.11]
    there, back = estimate(values, 1), estimate([-value for value in values], 1)
    assert (1 + there.overhead) * (1 + back.overhead) == pytest.approx(1, rel=1e-12)
    assert (1 + there.interval.lower) * (1 + back.interval.upper) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("values", [[], [0.1], [0.1, math.nan], [0.1, math.inf]])
def test_too_little_is_no_estimate(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite log-ratios"):
        estimate(values, looks=1)


@pytest.mark.parametrize("level", [0.95, 0.99])
def test_the_interval_is_that_of_scipys_own_test(level: float) -> None:
    values = [0.31, 0.28, 0.35, 0.30, 0.27, 0.36]
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    found = estimate(values, looks=1).interval if level == 0.95 else estimate(values, looks=5).strict
    assert math.log1p(found.lower) == pytest.approx(expected.low, rel=1e-12)
    assert math.log1p(found.upper) == pytest.approx(expected.high, rel=1e-12)
