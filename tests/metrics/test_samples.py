"""What a report says, as samples."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.overhead.test_record import record
from tests.report.samples import SAMPLES, changed, error, passing
from validator.metrics.families import FAMILIES, Sample
from validator.metrics.samples import (
    ERROR_KINDS,
    error_kind,
    overhead_samples,
    report_samples,
    waiver_samples,
)
from validator.overhead.gate import disturbances
from validator.overhead.measurement import Mode
from validator.overhead.record import record_schema
from validator.pipeline import load_pipeline
from validator.report.model import LaunchRow, Outcome, Report, Verdict


def values(report: Report) -> dict[tuple[str, ...], float]:
    """Value by metric name and the values of its own labels."""
    return {
        (sample.name, *(sample.labels[label] for label in FAMILIES[sample.name].labels)): sample.value
        for sample in report_samples(report)
    }


@pytest.mark.parametrize("name", SAMPLES)
def test_exactly_one_verdict_and_one_outcome_a_gate_are_1(name: str) -> None:
    report = SAMPLES[name]()
    found = values(report)
    verdicts = {key[1]: value for key, value in found.items() if key[0] == "validator_check_verdict"}
    assert verdicts == {verdict.value: float(verdict is report.verdict) for verdict in Verdict}
    for gate in report.gates:
        outcomes = {key[2]: v for key, v in found.items() if key[:2] == ("validator_gate_outcome", gate.name)}
        assert outcomes == {outcome.value: float(outcome is gate.outcome) for outcome in Outcome}


def test_a_success_leaves_its_time_and_a_failure_does_not() -> None:
    good, bad = replace(passing(), started="2026-11-29T12:00:00+00:00", seconds=30.0), changed()
    # 2026-11-29 is day 20786 of Unix time.
    assert values(good)["validator_check_last_success_timestamp_seconds",] == 20786 * 86400 + 12 * 3600 + 30
    assert ("validator_check_last_success_timestamp_seconds",) not in values(bad)


def test_the_first_divergent_step_is_a_number_or_not_a_number() -> None:
    assert math.isnan(values(passing())["validator_first_divergent_step",])
    divergence = changed().divergence
    assert divergence is not None
    assert values(changed())["validator_first_divergent_step",] == float(divergence.moment.split(":")[1])


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        (
            "The launch did not end within 300 s (policy.limits.launch_seconds) and was killed; see log.txt.",
            "time_limit",
        ),
        ("The launch failed: it ran out of memory; see log.txt.", "memory"),
        ("The launch failed: no space is left on the device that holds /x; see log.txt.", "disk"),
        ("The launch failed: the environment of /p lacks the Python package 'einops'; see log.txt.", "package"),
        ("The launch failed: rank 1 was ended by signal 9 (SIGKILL); see log.txt.", "crash"),
        ("Something nobody thought of.", "other"),
    ],
)
def test_errors_have_kinds(sentence: str, kind: str) -> None:
    assert error_kind(sentence) == kind
    gates = (replace(passing().gates[0], outcome=Outcome.ERROR, sentence=sentence),)
    found = values(replace(error(), gates=gates))
    assert {key[1]: value for key, value in found.items() if key[0] == "validator_check_errors"} == {
        each: float(each == kind) for each in ERROR_KINDS
    }


def test_launches_are_told_by_what_they_were_for() -> None:
    names = "reference repeat-2 resume-1 base-1 trace-golden-observed deterministic-1 profile-default".split()
    rows = tuple(LaunchRow(name, "for a test", "1..3", "completed", float(at), "") for at, name in enumerate(names, 1))
    found = values(replace(passing(), launches=rows))
    assert {key[1]: value for key, value in found.items() if key[0] == "validator_launch_duration_seconds"} == {
        "reference": 1.0, "repeat": 2.0, "resume": 3.0, "base": 4.0, "trace": 5.0, "overhead": 7.0,
    }  # fmt: skip


def test_a_measurement_gives_its_figures_and_a_first_look_none() -> None:
    made = record()
    found = {sample.name: sample.value for sample in overhead_samples(made)}
    assert found["validator_overhead_ratio"] == made["overhead"]["estimate"]
    assert found["validator_overhead_budget_ratio"] == 0.1
    assert found["validator_overhead_pairs"] == 4
    assert list(overhead_samples(record(Mode.QUICK))) == []
    assert list(overhead_samples(record(Mode.NOISE, 1.0))) == []


def test_a_measurement_on_a_gpu_tells_its_state_by_arm() -> None:
    made = record()
    for arm, hot in zip(made["arms"], (3, 0), strict=True):
        for index, launch in enumerate(arm["launches"]):
            launch["gpu"] = {
                "sm_clock_mhz": 1700.0 + index + 10 * hot, "sm_clock_max_mhz": 1980.0,
                "temperature_celsius": 60.0 + index, "power_watts": 500.0, "power_limit_watts": 700.0,
                "uncorrected_memory_errors": 0.0,
                "throttle_reasons": "0x0000000000000004" if index < hot else "0x0000000000000001",
            }  # fmt: skip
    Draft202012Validator(record_schema()).validate(made)
    found = {(s.name, s.labels.get("arm", s.labels.get("reason"))): s.value for s in overhead_samples(made)}
    assert len(made["arms"][0]["launches"]) == 4
    assert found["validator_gpu_sm_clock_hertz", "deterministic"] == 1731.5e6  # of 1730, 1731, 1732, 1733 MHz
    assert found["validator_gpu_sm_clock_hertz", "default"] == 1701.5e6
    assert found["validator_gpu_sm_clock_max_hertz", None] == 1980e6
    assert found["validator_gpu_temperature_celsius", "default"] == 63.0
    assert found["validator_gpu_power_watts", "default"] == 500.0
    assert found["validator_gpu_power_limit_watts", None] == 700.0
    assert found["validator_gpu_held_back_launches", "power limit"] == 3.0
    assert found["validator_gpu_held_back_launches", "temperature"] == 0.0
    errors = {s.labels["kind"]: s.value for s in overhead_samples(made) if s.name == "validator_gpu_memory_errors"}
    assert errors == {"uncorrected": 0.0}  # corrected ones were not answered
    (told,) = disturbances(made)
    assert told == "the GPU's clocks were held back at the end of 3 of 8 timed launches: power limit"


def test_a_measurement_on_a_cpu_tells_of_no_gpu() -> None:
    assert not [sample for sample in overhead_samples(record()) if sample.name.startswith("validator_gpu_")]


def test_labels_are_those_of_the_family_and_no_others() -> None:
    key = {"pipeline": "p", "hardware_class": "h"}
    with pytest.raises(ValueError, match="expected are"):
        Sample("validator_check_verdict", key, 1.0)
    with pytest.raises(ValueError, match="expected are"):
        Sample("validator_overhead_ratio", {**key, "commit": "abc"}, 1.0)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_names_follow_prometheus_conventions(family: object) -> None:
    name = family.name  # type: ignore[attr-defined]
    assert name.startswith("validator_")
    assert not name.endswith(("_total", "_count", "_sum", "_bucket", "_milliseconds", "_percent", "_days"))
    if "time" in name or "duration" in name:
        assert name.endswith("_seconds")
    assert family.help.endswith(".")  # type: ignore[attr-defined]


def test_a_waiver_holds_until_the_end_of_its_day() -> None:
    root = Path(__file__).resolve().parents[2]
    pipeline = load_pipeline("nemotron-cpu", root)
    found = {sample.name: sample.value for sample in waiver_samples(pipeline, "h")}
    assert found["validator_waivers"] == len(pipeline.policy.waivers)
    soonest = min(waiver.expires for waiver in pipeline.policy.waivers)
    days = (soonest - date(1970, 1, 1)).days + 1
    assert found["validator_waiver_expiry_timestamp_seconds"] == days * 86400
