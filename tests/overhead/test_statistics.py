"""The interval and the sequential rule, against a worked example and against known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from validator.overhead.statistics import ERROR_RATE, Decision, estimate, level_of_look, noise_floor

# Student's t: the 0.975 quantile with 3 degrees of freedom is 3.182446 (any table).
T3 = 3.182446305284263


def test_a_worked_example() -> None:
    values = [0.08, 0.10, 0.12, 0.10]
    found = estimate(values)
    spread = math.sqrt((0.02**2 + 0.02**2) / 3)
    half = T3 * spread / 2
    assert found.overhead == pytest.approx(math.expm1(0.10), rel=1e-12)
    assert found.interval.lower == pytest.approx(math.expm1(0.10 - half), rel=1e-9)
    assert found.interval.upper == pytest.approx(math.expm1(0.10 + half), rel=1e-9)
    assert (found.interval.level, found.look_level) == (0.95, 0.95)
    assert found.spread == pytest.approx(spread, rel=1e-12)
    assert noise_floor(spread, 4, 1) == pytest.approx(math.expm1(half), rel=1e-9)


@pytest.mark.parametrize("looks", [(4, 8), (6, 12), (8, 16), (4, 6), (10, 40), (4, 16)])
def test_the_interval_of_either_look_misses_the_truth_at_most_once_in_twenty(looks: tuple[int, int]) -> None:
    values = np.random.default_rng(5).standard_normal((100_000, looks[-1]))
    missed = np.zeros(len(values), bool)
    for number, pairs in enumerate(looks, start=1):
        found = values[:, :pairs]
        statistic = np.abs(found.mean(axis=1)) / (found.std(axis=1, ddof=1) / math.sqrt(pairs))
        missed |= statistic > stats.t.ppf((1 + level_of_look(number, 2)) / 2, pairs - 1)
    assert missed.mean() <= ERROR_RATE + 0.0014  # two standard errors of the simulation


def test_one_of_two_looks_is_more_careful_than_a_single_one_and_says_so() -> None:
    values = [0.08, 0.10, 0.12, 0.10]
    only, first, last = estimate(values), estimate(values, 1, 2), estimate(values, 2, 2)
    assert [found.look_level for found in (only, first, last)] == pytest.approx([0.95, 0.9735, 0.9735])
    assert first.interval == last.interval
    assert first.interval.lower < only.interval.lower < only.interval.upper < first.interval.upper
    assert {found.interval.level for found in (only, first, last)} == {0.95}


@pytest.mark.parametrize(("look", "looks"), [(1, 3), (3, 2), (0, 1)])
def test_a_look_that_the_rule_is_not_made_for_is_refused(look: int, looks: int) -> None:
    with pytest.raises(ValueError, match="at most 2"):
        estimate([0.1, 0.2], look, looks)


@pytest.mark.parametrize("away", [0.0, 0.5, 1.0, 2.0, 6.0])
def test_on_normal_noise_the_interval_covers_the_truth_wherever_measuring_stops(away: float) -> None:
    """``away`` is the distance of the truth from the budget, in standard deviations of a pair."""
    draw = np.random.default_rng(7)
    budget, simulations, looks = 0.10, 4000, (4, 8)
    truth = math.log1p(budget) + away * 0.05
    covered = wrong = 0
    for values in draw.normal(truth, 0.05, (simulations, looks[-1])):
        found = estimate(list(values[: looks[0]]), 1, len(looks))
        for number, pairs in enumerate(looks[1:], start=2):
            if found.decide(budget) is Decision.INCONCLUSIVE:
                found = estimate(list(values[:pairs]), number, len(looks))
        covered += found.interval.contains(math.expm1(truth))
        wrong += found.decide(budget) is (Decision.HOLDS if away else Decision.FAILS)
    assert covered / simulations >= 0.945  # 0.95, less one and a half standard errors
    assert covered / simulations <= 0.98
    assert wrong / simulations <= ERROR_RATE / 2 + 0.005


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
    assert estimate(values, 1, 2).decide(0.10) is decision


def test_the_order_of_the_arms_only_changes_the_sign() -> None:
    values = [0.08, 0.10, 0.12, 0.11]
    there, back = estimate(values), estimate([-value for value in values])
    assert (1 + there.overhead) * (1 + back.overhead) == pytest.approx(1, rel=1e-12)
    assert (1 + there.interval.lower) * (1 + back.interval.upper) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("values", [[], [0.1], [0.1, math.nan], [0.1, math.inf]])
def test_too_little_is_no_estimate(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite log-ratios"):
        estimate(values)


@pytest.mark.parametrize(("look", "looks", "level"), [(1, 1, 0.95), (1, 2, 0.9735), (2, 2, 0.9735)])
def test_the_interval_is_that_of_scipys_own_test(look: int, looks: int, level: float) -> None:
    values = [0.31, 0.28, 0.35, 0.30, 0.27, 0.36]
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(level)
    found = estimate(values, look, looks).interval
    assert math.log1p(found.lower) == pytest.approx(expected.low, rel=1e-12)
    assert math.log1p(found.upper) == pytest.approx(expected.high, rel=1e-12)
