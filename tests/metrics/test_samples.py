"""What a report says, as samples."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

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
from validator.overhead.measurement import Mode
from validator.pipeline import load_pipeline
from validator.report.model import Outcome, Report, Verdict


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


def test_a_measurement_gives_its_figures_and_a_first_look_none() -> None:
    made = record()
    found = {sample.name: sample.value for sample in overhead_samples(made)}
    assert found["validator_overhead_ratio"] == made["overhead"]["estimate"]
    assert found["validator_overhead_budget_ratio"] == 0.1
    assert found["validator_overhead_pairs"] == 4
    assert list(overhead_samples(record(Mode.QUICK))) == []
    assert list(overhead_samples(record(Mode.NOISE, 1.0))) == []


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
