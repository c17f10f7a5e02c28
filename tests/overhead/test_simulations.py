"""The whole rule, from step times to decision, on noise that was recorded on real launches.

``recorded_steps.json`` holds rounds of real timed launches of nemotron-cpu, host by host: in each round one launch of
either arm, one right after the other (``record_steps.py`` writes it). A simulated pair takes a round at
random, draws its steps anew (with replacement) and takes medians, as a measurement does. What the two real arms differ
by on average is taken out, and a known overhead put in its place.
"""

from __future__ import annotations

import json
import math
import random
import statistics
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.overhead.samples import COMPUTATION, timing
from validator.overhead.arms import Arm
from validator.overhead.measurement import Measurement, Mode, make_plan, measure
from validator.overhead.statistics import ERROR_RATE, Decision
from validator.overhead.timings import LaunchTiming
from validator.pipeline.overhead import OverheadPolicy

SIMULATIONS = 1000
BUDGET = 0.10

RECORDING = Path(__file__).parent / "recorded_steps.json"
HOSTS = tuple(json.loads(RECORDING.read_text())["hosts"])

Round = dict[str, list[float]]


@cache
def recorded(host: str) -> list[Round]:
    content = json.loads(RECORDING.read_text())
    rounds: list[Round] = content["hosts"][host]
    return rounds


def drawn(draw: random.Random, steps: list[float]) -> float:
    return statistics.median(draw.choices(steps, k=len(steps)))


@cache
def real_difference(host: str) -> float:
    """What a drawn pair's log-ratio is on average."""
    draw = random.Random(1)  # noqa: S311 - no secret
    pairs = [draw.choice(recorded(host)) for _ in range(40_000)]
    return statistics.fmean(math.log(drawn(draw, p["deterministic"]) / drawn(draw, p["default"])) for p in pairs)


@dataclass
class SimulatedLaunches:
    """Launches of two arms that truly differ by ``overhead``, with the noise recorded on ``host``."""

    host: str
    overhead: float
    draw: random.Random
    round: Round | None = None

    def time(self, arm: Arm, number: int, total: int) -> LaunchTiming:
        taken = self.draw.choice(recorded(self.host)) if self.round is None else self.round
        self.round = taken if self.round is None else None  # the second launch of a pair is of the same round
        shift = math.log1p(self.overhead) - real_difference(self.host) if arm.name == "deterministic" else 0.0
        return timing(arm.name, drawn(self.draw, taken[arm.name]) * math.exp(shift))

    def profile(self, arm: Arm, total: int) -> list[dict[str, object]]:
        raise AssertionError("no breakdown is asked for")


@cache
def simulate(host: str, overhead: float) -> list[Measurement]:
    plan = make_plan(COMPUTATION, OverheadPolicy(budget=BUDGET), Mode.FULL, breakdown=False)
    draw = random.Random(f"{host} {overhead}")  # noqa: S311 - no secret
    return [measure(SimulatedLaunches(host, overhead, draw), plan) for _ in range(SIMULATIONS)]


def decisions(host: str, overhead: float) -> Counter[Decision]:
    return Counter(found.decision for found in simulate(host, overhead))


@pytest.mark.parametrize("host", HOSTS)
def test_the_recorded_noise_is_real_and_enough(host: str) -> None:
    assert len(recorded(host)) >= 8
    assert all(len(steps) == 12 and min(steps) > 0 for each in recorded(host) for steps in each.values())


def pairs_are_spread_by(host: str) -> float:
    """Standard deviation of the recorded pairs' log-ratios."""
    medians = [
        (statistics.median(each["deterministic"]), statistics.median(each["default"])) for each in recorded(host)
    ]
    return statistics.stdev(math.log(one / other) for one, other in medians)


@pytest.mark.parametrize("overhead", [0.0, 0.03, 0.10, 0.30])
@pytest.mark.parametrize("host", HOSTS)
def test_the_interval_covers_the_truth_as_often_as_it_says(host: str, overhead: float) -> None:
    found = simulate(host, overhead)
    covered = sum(each.estimate.interval.contains(overhead) for each in found)
    open_ = decisions(host, overhead)[Decision.INCONCLUSIVE]
    print(f"{host}, {overhead:.0%}: covered {covered / SIMULATIONS:.1%}, inconclusive {open_ / SIMULATIONS:.1%}")
    assert covered >= 0.93 * SIMULATIONS
    assert covered <= 0.98 * SIMULATIONS


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_quiet_enough_decides_what_is_far_from_the_budget(host: str) -> None:
    """30 % is log(1.3 / 1.1) = 0.167 from a budget of 10 %: twelve standard errors of eight pairs spread by 4 %."""
    if pairs_are_spread_by(host) <= 0.04:
        assert decisions(host, 0.30)[Decision.FAILS] >= 0.95 * SIMULATIONS
    assert decisions(host, 0.30)[Decision.FAILS] > decisions(host, BUDGET)[Decision.FAILS]


@pytest.mark.parametrize("host", HOSTS)
def test_decisions_are_seldom_wrong(host: str) -> None:
    assert decisions(host, 0.03)[Decision.FAILS] <= 0.05 * SIMULATIONS
    assert decisions(host, 0.30)[Decision.HOLDS] <= 0.05 * SIMULATIONS


@pytest.mark.parametrize("host", HOSTS)
def test_at_the_budget_itself_either_decision_is_wrong_and_the_rule_keeps_its_error_rate(host: str) -> None:
    found = decisions(host, BUDGET)
    assert found[Decision.HOLDS] + found[Decision.FAILS] <= ERROR_RATE * SIMULATIONS
