"""From what the ranks wrote to a launch's timing."""

from __future__ import annotations

from typing import Any

import pytest

from validator.errors import LaunchError
from validator.overhead.breakdown import PHASES, breakdown
from validator.overhead.timings import take_timing


def rank(steps: list[float], **changes: Any) -> dict[str, Any]:
    usual = {
        "steps": steps, "tokens_per_step": 512, "peak_memory_bytes": 100, "window_seconds": 10.0, "busy_seconds": 15.0,
        "steal_seconds": 1.0, "own_seconds": 5.0, "load_average": 2.5, "gpu": None, "torch": {"threads": 1},
    }  # fmt: skip
    return {**usual, **changes}


def test_a_step_counts_as_its_slowest_rank_and_the_first_steps_do_not_count() -> None:
    ranks = [rank([9.0, 9.0, 1.0, 2.0, 3.0]), rank([9.0, 9.0, 1.5, 1.0, 3.5], peak_memory_bytes=300)]
    found = take_timing("default", ranks, warmup=2, timed=3)
    assert found.steps == (1.5, 2.0, 3.5)
    assert found.median == 2.0
    assert found.peak_memory_bytes == 300
    assert found.other_cores == pytest.approx((15 - 2 * 5) / 10)
    assert found.stolen_cores == pytest.approx(0.1)


@pytest.mark.parametrize(
    "ranks",
    [
        [rank([1.0, 1.0])],
        [rank([1.0, 1.0, 1.0]), rank([1.0, 1.0])],
        [rank([1.0, 1.0, 0.0])],
        [rank([1.0, 1.0, -1.0])],
        [{"steps": [1.0, 1.0, 1.0]}],
        [rank([1.0, 1.0, 1.0], window_seconds=0.0)],
        [rank("abc")],
    ],
)
def test_what_cannot_be_used_is_no_timing(ranks: list[dict[str, Any]]) -> None:
    with pytest.raises(LaunchError, match="cannot be used"):
        take_timing("default", ranks, warmup=0, timed=3)


def test_the_breakdown_is_by_arm_the_median_over_steps_and_the_mean_over_ranks() -> None:
    def profile(forward: float, product: float) -> list[dict[str, Any]]:
        steps = [{"forward": 99.0, "step": 100.0}, *({"forward": forward + d, "step": 2.0} for d in (-0.1, 0.0, 0.3))]
        return [
            {"phases": steps, "operators": {"aten::mm": {"seconds": product, "calls": 1}}},
            {
                "phases": steps,
                "operators": {"aten::mm": {"seconds": product, "calls": 1}, "x": {"seconds": 1, "calls": 1}},
            },
        ]

    found = breakdown({"deterministic": profile(1.0, 0.5), "default": profile(0.6, 0.2)}, warmup=1, clocked=3)
    assert [row["name"] for row in found["phases"]] == list(PHASES)
    forward, other = found["phases"][0], found["phases"][-1]
    assert forward["seconds"] == {"deterministic": 1.0, "default": 0.6}
    assert forward["difference"] == 0.4
    assert other["seconds"] == {"deterministic": 1.0, "default": 1.4}
    assert found["operators"][0] == {
        "name": "aten::mm",
        "seconds": {"deterministic": 0.5, "default": 0.2},
        "difference": 0.3,
    }
    assert found["operators"][1]["difference"] == 0.0


@pytest.mark.parametrize(
    "broken", [[{}], [{"phases": [], "operators": {}}], [{"phases": [{"step": "x"}] * 3, "operators": {}}]]
)
def test_a_profile_that_cannot_be_used(broken: list[dict[str, Any]]) -> None:
    with pytest.raises(LaunchError, match="cannot be used"):
        breakdown({"deterministic": broken, "default": broken}, warmup=0, clocked=2)
