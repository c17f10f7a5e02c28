"""From a report, an overhead record, goldens and waivers to samples. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from validator.golden.record import GoldenRecord
from validator.metrics.families import Sample
from validator.metrics.gpu import gpu_samples
from validator.pipeline import Pipeline
from validator.report.model import GateReport, Outcome, Report, Verdict

#: What can keep a gate from being answered, by the words of its sentence; the first that is found counts.
_KINDS = {
    "hardware": r"hardware fault",
    "time_limit": r"did not end within",
    "memory": r"out of memory",
    "disk": r"no space|cannot be written|Writing under",
    "package": r"lacks the Python package|package .* is missing|megatron-core",
    "recorder": r"recorder|sampled|known answer|no leaf",
    "crash": r"launch failed|exited with code|signal",
}
ERROR_KINDS = (*_KINDS, "other")

#: Kinds of launches, by the beginning of their names.
_LAUNCHES = {"reference": "reference", "repeat": "repeat", "resume": "resume", "base": "base", "trace": "trace"}


def report_samples(report: Report) -> Iterator[Sample]:
    """Everything that one check says about its pipeline on its hardware class."""
    key = {"pipeline": report.pipeline, "hardware_class": report.hardware_class}
    ended = datetime.fromisoformat(report.started).timestamp() + report.seconds
    for verdict in Verdict:
        yield Sample("validator_check_verdict", {**key, "verdict": verdict.value}, float(verdict is report.verdict))
    yield Sample("validator_check_timestamp_seconds", key, ended)
    if report.verdict.exit_code == 0:
        yield Sample("validator_check_last_success_timestamp_seconds", key, ended)
    yield Sample("validator_check_duration_seconds", key, report.seconds)
    found = [error_kind(gate.sentence) for gate in report.gates if gate.outcome is Outcome.ERROR]
    for kind in ERROR_KINDS:
        yield Sample("validator_check_errors", {**key, "kind": kind}, float(found.count(kind)))
    for gate in report.gates:
        yield from _gate(gate, key)
    longest: dict[str, float] = {}
    for launch in report.launches:
        part = next((part for begin, part in _LAUNCHES.items() if launch.name.startswith(begin)), "overhead")
        longest[part] = max(longest.get(part, 0.0), launch.seconds)
    for part, seconds in longest.items():
        yield Sample("validator_launch_duration_seconds", {**key, "launch": part}, seconds)
    yield Sample("validator_first_divergent_step", key, _divergent_step(report))
    if report.overhead is not None:
        yield from overhead_samples(report.overhead)


def _gate(gate: GateReport, key: Mapping[str, str]) -> Iterator[Sample]:
    own = {**key, "gate": gate.name}
    for outcome in Outcome:
        yield Sample("validator_gate_outcome", {**own, "outcome": outcome.value}, float(outcome is gate.outcome))
    yield Sample("validator_gate_required", own, float(gate.required))
    yield Sample("validator_gate_duration_seconds", own, gate.seconds)


def error_kind(sentence: str) -> str:
    """Which of ``ERROR_KINDS`` a gate's sentence is about."""
    return next((kind for kind, words in _KINDS.items() if re.search(words, sentence, re.IGNORECASE)), "other")


def _divergent_step(report: Report) -> float:
    if report.divergence is None:
        return math.nan
    step = report.divergence.moment.rpartition(":")[2]
    return float(step) if step.isdigit() else math.nan


def overhead_samples(record: Mapping[str, Any]) -> Iterator[Sample]:
    """What a whole measurement says; a first look and a noise measurement belong to no curve and give nothing."""
    if record["mode"] != "full":
        return
    key = {"pipeline": record["pipeline"], "hardware_class": record["hardware_class"]}
    found = record["overhead"]
    yield Sample("validator_overhead_ratio", key, found["estimate"])
    yield Sample("validator_overhead_lower_ratio", key, found["interval"]["lower"])
    yield Sample("validator_overhead_upper_ratio", key, found["interval"]["upper"])
    yield Sample("validator_overhead_budget_ratio", key, record["budget"])
    yield Sample("validator_overhead_noise_floor_ratio", key, record["noise_floor"]["here"])
    yield Sample("validator_overhead_pairs", key, found["pairs"])
    measured = datetime.fromisoformat(record["started"]).timestamp() + record["seconds"]
    yield Sample("validator_overhead_timestamp_seconds", key, measured)
    for arm in record["arms"]:
        own = {**key, "arm": arm["name"]}
        yield Sample("validator_step_time_seconds", own, arm["step_seconds"]["median"])
        yield Sample("validator_tokens_per_second", own, arm["tokens_per_second"])
        yield Sample("validator_peak_memory_bytes", own, arm["peak_memory_bytes"])
    for row in record["breakdown"]["phases"] if record["breakdown"] else ():
        for arm, seconds in row["seconds"].items():
            yield Sample("validator_phase_time_seconds", {**key, "arm": arm, "phase": row["name"]}, seconds)
    yield from gpu_samples(record)


def golden_samples(goldens: Iterable[GoldenRecord]) -> Iterator[Sample]:
    """When each golden was recorded."""
    for golden in goldens:
        key = {"pipeline": golden.pipeline, "hardware_class": golden.hardware_class}
        yield Sample("validator_golden_recorded_timestamp_seconds", key, _midnight(golden.recorded))


def waiver_samples(pipeline: Pipeline, hardware_class: str) -> Iterator[Sample]:
    """How many waivers a pipeline has, and when the next one expires: at the end of the day that it names."""
    key = {"pipeline": pipeline.name, "hardware_class": hardware_class}
    by_gate: dict[str, list[date]] = {}
    for waiver in pipeline.policy.waivers:
        by_gate.setdefault(str(waiver.gate), []).append(waiver.expires)
    yield Sample("validator_waivers", {**key, "gate": "resume"}, float(len(by_gate.get("resume", ()))))
    for gate, expiries in by_gate.items():
        expiry = _midnight(min(expiries) + timedelta(days=1))
        yield Sample("validator_waiver_expiry_timestamp_seconds", {**key, "gate": gate}, expiry)


def _midnight(day: date) -> float:
    return datetime.combine(day, time(), UTC).timestamp()
