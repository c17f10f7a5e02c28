"""From what the ranks wrote to a launch's timing."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.execute.launching import request_in
from tests.forged import anything
from validator.errors import LaunchError
from validator.overhead.breakdown import PHASES, breakdown
from validator.overhead.gpu import held_back
from validator.overhead.timings import read_measured, take_timing


def rank(steps: list[Any], **changes: Any) -> dict[str, Any]:
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
        [rank([1.0, 1.0, 1.0], gpu="hot")],
        [rank([1.0, 1.0, 1.0], torch=["threads"])],
        [rank([1.0, 1.0, float("nan")])],
        [rank([1.0, 1.0, float("inf")])],
        [rank([1.0, 1.0, 1e-300])],  # a record tells nothing below a microsecond
        [rank([1.0, 1.0, 10**400])],
        [rank([1.0, 1.0, 1.0], tokens_per_step=float("inf"))],
        [rank([1.0, 1.0, 1.0], tokens_per_step=-1)],
        [rank([1.0, 1.0, 1.0], peak_memory_bytes=float("nan"))],
        [rank([1.0, 1.0, 1.0], window_seconds=1e-300)],
        [rank([1.0, 1.0, 1.0], load_average=float("inf"))],
        [rank([1.0, 1.0, 1.0], own_seconds=True)],
        [rank([1.0, 1.0, 1.0], gpu={"power_watts": 10**400})],
        [rank([1.0, 1.0, 1.0], torch={"x": float("nan")})],
        [rank([1.0, 1.0, 1.0], torch={"x": {"y": 1}})],
        [rank([1.0, 1.0, 1.0], torch={str(number): number for number in range(101)})],
    ],
)
def test_what_cannot_be_used_is_no_timing(ranks: list[dict[str, Any]]) -> None:
    with pytest.raises(LaunchError, match="cannot be used"):
        take_timing("default", ranks, warmup=0, timed=3)


def test_what_is_quoted_of_a_measurement_is_short() -> None:
    with pytest.raises(LaunchError, match="cannot be used") as error:
        take_timing("default", [rank([1.0, 1.0, "\x1b[2J\n" + "x" * 100_000])], warmup=0, timed=3)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500


def test_settings_of_pytorch_are_kept_as_they_are() -> None:
    settings = {"version": "2.14.1", "threads": 16, "cudnn": None, "mkldnn": True, "share": 0.5}
    found = take_timing("default", [rank([1.0, 1.0, 1.0], torch=settings)], warmup=0, timed=3).torch
    assert found == settings
    assert json.dumps(found) == json.dumps(settings)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(list(rank([]))), anything, min_size=1, max_size=2))
def test_any_measurement_is_a_timing_that_can_be_recorded_or_refused(changes: dict[str, Any]) -> None:
    try:
        found = take_timing("default", [rank([1.0, 1.0, 1.0]) | changes], warmup=0, timed=3)
    except LaunchError:
        return
    json.dumps(asdict(found), allow_nan=False)
    assert math.isfinite(found.tokens_per_step / found.median)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"\xff", b"[]", b"", b"1" * 5000])
def test_a_file_that_is_no_measurement_is_named(tmp_path: Path, content: bytes) -> None:
    request = request_in(tmp_path, ranks=1)
    request.scratch.mkdir()
    request.measurement_file(0).write_bytes(content)
    with pytest.raises(LaunchError, match=r"Rank 0 left no measurement in .*measured-00000\.json"):
        read_measured(request)


def test_of_a_gpu_only_what_has_a_name_and_a_type_is_taken() -> None:
    told = {
        "sm_clock_mhz": 1755.0, "power_watts": "[N/A]", "temperature_celsius": float("nan"), "mig": "Disabled",
        "throttle_reasons": "0x0000000000000024", "corrected_memory_errors": 0, "somebody's": {"else": 1},
        "x": "y" * 99,
    }  # fmt: skip
    found = take_timing("default", [rank([1.0, 1.0, 1.0], gpu=told)], warmup=0, timed=3).gpu
    assert found == {
        "sm_clock_mhz": 1755.0, "corrected_memory_errors": 0.0, "throttle_reasons": "0x0000000000000024",
        "mig": "Disabled",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mask", "reasons"),
    [
        ("0x0000000000000000", ()),
        ("0x0000000000000001", ()),  # idle
        ("0x0000000000000002", ()),  # clocks that somebody set
        ("0x0000000000000024", ("power limit", "temperature")),
        ("0x00000000000000e8", ("hardware slowdown", "temperature", "temperature (hardware)", "power brake")),
        ("[N/A]", ()),
    ],
)
def test_what_holds_a_gpu_back(mask: str, reasons: tuple[str, ...]) -> None:
    assert held_back({"throttle_reasons": mask}) == reasons
    assert held_back({}) == held_back(None) == ()


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
    "broken",
    [
        [{}],
        [{"phases": [], "operators": {}}],
        [{"phases": [{"step": "x"}] * 3, "operators": {}}],
        [{"phases": [{"step": float("nan")}] * 3, "operators": {}}],
        [{"phases": [1, 1, 1], "operators": {}}],
        [{"phases": [{"step": 1.0}] * 3, "operators": []}],
        [{"phases": [{"step": 1.0}] * 3, "operators": {"aten::mm": 1}}],
        [{"phases": [{"step": 1.0}] * 3, "operators": {"aten::mm": {"seconds": float("inf")}}}],
        [{"phases": [{"step": 1.0}] * 3, "operators": {"aten::mm": {"seconds": 10**400}}}],
    ],
)
def test_a_profile_that_cannot_be_used(broken: list[dict[str, Any]]) -> None:
    with pytest.raises(LaunchError, match="cannot be used"):
        breakdown({"deterministic": broken, "default": broken}, warmup=0, clocked=2)


PROFILE = {"phases": [{"forward": 0.5, "step": 1.0}] * 3, "operators": {"aten::mm": {"seconds": 0.1, "calls": 1}}}


@settings(deadline=None)
@given(st.sampled_from(list(PROFILE)), anything, st.lists(anything, max_size=3), anything)
def test_any_profile_is_a_breakdown_that_can_be_recorded_or_refused(
    name: str, value: Any, steps: list[Any], figures: Any
) -> None:
    for part in (value, steps, {"aten::mm": figures}, {"aten::mm": {"seconds": figures}}, [{"step": figures}] * 3):
        broken = [{**PROFILE, name: part}]
        try:
            found = breakdown({"deterministic": broken, "default": [PROFILE]}, warmup=0, clocked=2)
        except LaunchError:
            continue
        json.dumps(found, allow_nan=False)


def test_an_operators_name_is_short_and_does_nothing_where_it_is_shown() -> None:
    operators = {"\x1b[2J\ud800" + "x" * 100_000: {"seconds": 9.0}}
    found = breakdown({"a": [{**PROFILE, "operators": operators}], "b": [PROFILE]}, warmup=0, clocked=2)
    name = found["operators"][0]["name"]
    assert name.startswith("\\x1b[2J\\ud800xxx")
    assert len(name) < 300
