"""Drift against the golden that is superseded."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.samples import trajectory
from validator.golden import Drift, measure_drift
from validator.golden.drift import relative_move

numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(numbers, numbers)
def test_a_relative_move_is_finite_symmetric_and_zero_for_equal_values(one: float, other: float) -> None:
    move = relative_move(one, other)
    assert 0 <= move <= 2
    assert math.isfinite(move)
    assert relative_move(other, one) == move
    assert relative_move(one, one) == 0


def test_known_moves() -> None:
    assert relative_move(1.0, 0.5) == 0.5
    assert relative_move(0.5, 1.0) == 0.5
    assert relative_move(1.0, -1.0) == 2.0
    assert relative_move(0.0, 1e-300) == 1.0
    assert relative_move(0.0, -0.0) == 0.0


@pytest.mark.parametrize("name", ["lm_loss", "lm loss", "training_loss", "grad_norm", "grad-norm", "train/LM loss"])
def test_the_largest_and_the_final_move(tmp_path: Path, name: str) -> None:
    old = trajectory(tmp_path, (8.0, 3.0, 3.5), metric=name)
    new = trajectory(tmp_path, (8.0, 4.0, 4.0, 1.0), metric=name)
    assert measure_drift(old, new) == {name: Drift(largest=0.25, moment="step:2", final=0.125)}
    assert measure_drift(old, old) == {name: Drift(0.0, "step:1", 0.0)}


def test_other_metrics_are_left_out(tmp_path: Path) -> None:
    old, new = trajectory(tmp_path, metric="lm_loss_sum.0"), trajectory(tmp_path, metric="lm_loss_sum.0")
    assert measure_drift(old, new) == {}
