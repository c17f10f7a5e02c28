"""What becomes of a fault, from trajectories and accounts written by the test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.trajectory.synthetic import Launch, changed
from validator.faults import Category, Fault, Place, Scenario
from validator.selftest.judge import Side, judge
from validator.selftest.outcome import Outcome
from validator.trajectory.groups import Group, Moment, Phase
from validator.trajectory.metrics import Metric

WEIGHT = "decoder.weight"
STEP_2 = Moment(2)
FAULT = Fault(
    "other-weight", Category.PARAMETERS, "another weight", "", Scenario.RUN, Place("step:2", "parameters", WEIGHT)
)
QUIET, LOUD = {(0, "step:2"): {"model": "1"}}, {(0, "step:2"): {"model": "2"}}


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Side:
    return Side(Launch().seal(tmp_path_factory.mktemp("clean")), QUIET)


def other(tmp_path: Path, group: Group = Group.PARAMETERS) -> Side:
    return Side(changed((1, STEP_2, group, WEIGHT)).seal(tmp_path / "other"), LOUD)


def test_a_fault_at_its_place_is_caught_and_named(clean: Side, tmp_path: Path) -> None:
    result = judge(FAULT, clean, other(tmp_path))
    assert (result.outcome, result.found) == (Outcome.CAUGHT_AND_NAMED, f"step:2 parameters/{WEIGHT}")
    assert result.effective


def test_another_place_is_caught_and_not_named(clean: Side, tmp_path: Path) -> None:
    result = judge(FAULT, clean, other(tmp_path, Group.GRADIENTS))
    assert (result.outcome, result.found) == (Outcome.CAUGHT, f"step:2 gradients/{WEIGHT}")


def test_a_rank_that_is_expected_has_to_be_found(clean: Side, tmp_path: Path) -> None:
    place = replace(FAULT, expected=Place("step:2", "parameters", WEIGHT, ranks=(0,)))
    assert judge(place, clean, other(tmp_path)).outcome is Outcome.CAUGHT


def test_what_the_fault_says_it_touched_has_to_be_named(clean: Side, tmp_path: Path) -> None:
    loose = replace(FAULT, expected=Place("step:2", "parameters", "*"))
    side = other(tmp_path)
    assert judge(loose, clean, side).outcome is Outcome.CAUGHT_AND_NAMED
    elsewhere = replace(side, touched=frozenset({("parameters", "decoder.bias")}))
    assert judge(loose, clean, elsewhere).outcome is Outcome.CAUGHT


def test_bits_that_changed_under_an_equal_trajectory_are_missed(clean: Side, tmp_path: Path) -> None:
    blind = Side(Launch().seal(tmp_path / "blind"), LOUD)
    result = judge(FAULT, clean, blind)
    assert result.outcome is Outcome.MISSED
    assert result.effective


def test_no_changed_bit_has_no_effect_and_counts_nowhere(clean: Side, tmp_path: Path) -> None:
    same = Side(Launch().seal(tmp_path / "same"), QUIET)
    result = judge(FAULT, clean, same)
    assert result.outcome is Outcome.NO_EFFECT
    assert not result.effective


def test_a_launch_that_was_ended_early_is_compared_as_far_as_it_went(clean: Side, tmp_path: Path) -> None:
    early = Side(replace(Launch(), moments=clean.trajectory.moments[:-1]).seal(tmp_path / "early"), QUIET)
    assert judge(FAULT, clean, early).outcome is Outcome.NO_EFFECT


def with_losses(tmp_path: Path, name: str, loss: float) -> Side:
    def metrics(_: int, moment: Moment) -> dict[str, Metric]:
        return {"lm_loss": Metric.of(5.5 if moment.step < 2 else loss)} if moment.phase is Phase.STEP else {}

    return Side(replace(Launch(), metrics=metrics).seal(tmp_path / name), {(0, "step:2"): {"told": name}})


@pytest.mark.parametrize(
    ("loss", "five_decimals", "exact"),
    [(5.500001, False, True), (5.50001, True, True)],
)
def test_what_logged_losses_would_have_seen(tmp_path: Path, loss: float, five_decimals: bool, exact: bool) -> None:
    fault = replace(FAULT, expected=Place("step:2", "metrics", "lm_loss"))
    result = judge(fault, with_losses(tmp_path, "one", 5.5), with_losses(tmp_path, "two", loss))
    assert result.approaches is not None
    assert (result.approaches.five_decimals, result.approaches.exact_loss) == (five_decimals, exact)


def test_a_change_of_a_weight_alone_is_seen_by_no_logged_loss(clean: Side, tmp_path: Path) -> None:
    result = judge(FAULT, clean, other(tmp_path))
    assert result.approaches is not None
    assert (result.approaches.five_decimals, result.approaches.exact_loss) == (False, False)
