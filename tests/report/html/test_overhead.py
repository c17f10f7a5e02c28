"""What determinism costs, as the page shows a measurement's record."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from tests.report import samples
from validator.report.html import render_report
from validator.report.html.overhead import overhead


def _bounds(lower: float, upper: float, level: float = 0.95) -> dict[str, float]:
    return {"lower": lower, "upper": upper, "level": level}


def _arm(name: str, seconds: float) -> dict[str, Any]:
    quantiles = dict.fromkeys(("median", "least", "p5", "p25", "p75", "p95", "most"), seconds)
    launch = {
        "median": seconds, "steps": [seconds] * 4, "other_cores": 0.0, "stolen_cores": 0.0, "load_average": 1.0,
        "gpu": None,
    }  # fmt: skip
    return {
        "name": name, "purpose": f"the {name} arm", "step_seconds": quantiles, "tokens_per_second": 2048 / seconds,
        "peak_memory_bytes": 3 * 2**28, "torch": {"threads": 1}, "launches": [launch, launch],
    }  # fmt: skip


RECORD: dict[str, Any] = {
    "schema": "validator/overhead", "version": 2, "pipeline": "nemotron-cpu", "hardware_class": "cpu-x86-64-v3-1x2",
    "computation": "00" * 32, "started": "2026-11-29T12:00:00Z", "seconds": 300.0, "mode": "full", "stamps": [],
    "budget": 0.1, "decision": "fails",
    "overhead": {
        "arm": "deterministic", "over": "default", "estimate": 0.25, "pairs": 6, "interval": _bounds(0.22, 0.28),
        "look_level": 0.97, "spread": 0.02,
    },
    "further": [], "looks": [3, 6], "noise_floor": {"here": 0.02, "known": None},
    "pairs": [{"first": "default", "log_ratio": 0.22}] * 6,
    "arms": [_arm("deterministic", 0.5), _arm("default", 0.4)],
    "breakdown": {
        "phases": [{"name": "backward", "seconds": {"deterministic": 0.3, "default": 0.22}, "difference": 0.08}],
        "operators": [{"name": "aten::mm", "seconds": {"deterministic": 0.1, "default": 0.12}, "difference": -0.02}],
    },
    "sentence": "Deterministic mode costs 25.0 % of step time, above the budget of 10.0 %.",
}  # fmt: skip


def test_the_record_is_one_that_a_measurement_could_make() -> None:
    schema = json.loads(files("validator.overhead").joinpath("record.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(RECORD, schema)


def test_interval_budget_arms_and_breakdown_are_shown() -> None:
    page = render_report(replace(samples.passing(), overhead=RECORD))
    assert "Deterministic mode costs 25.0 % of step time" in page
    assert 'aria-label="Overhead 25.0 %, 95 % interval 22.0 % to 28.0 %, 6 pairs, budget 10.0 %"' in page
    for words in ("500.0 ms", "400.0 ms", "768 MiB", "4,096", "+80.0 ms", "−20.0 ms", "aten::mm"):
        assert words in page
    assert '<a href="#overhead">Overhead</a>' in page


def test_without_a_measurement_there_is_no_section() -> None:
    assert overhead(None) == ""
    assert 'id="overhead"' not in render_report(samples.passing())


@pytest.mark.parametrize("broken", [{}, {"sentence": "x"}, {**RECORD, "arms": 7}, {**RECORD, "budget": "much"}])
def test_a_record_that_is_no_record_is_named_and_the_page_goes_on(broken: dict[str, Any]) -> None:
    page = render_report(replace(samples.passing(), overhead=broken))
    assert "record cannot be shown" in page
    assert 'id="records"' in page
