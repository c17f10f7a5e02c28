"""The record of one measurement: a small JSON document, versioned, described by ``record.schema.json``."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from validator.errors import ValidatorError
from validator.overhead.bench import PROFILE_CLOCKED, PROFILE_WARMUP
from validator.overhead.breakdown import breakdown
from validator.overhead.measurement import Measurement, log_ratio
from validator.overhead.statistics import Estimate, Interval
from validator.overhead.timings import LaunchTiming
from validator.overhead.words import sentence

SCHEMA = "validator/overhead"
VERSION = 2

Document = dict[str, Any]


class RecordError(ValidatorError):
    """A file is no record of a measurement of this version: broken, half-written, foreign or of the future."""


def document(
    measurement: Measurement, *, pipeline: str, hardware_class: str, computation: str, started: str, seconds: float,
    stamps: Sequence[str], noise: float | None = None,
) -> Document:  # fmt: skip
    """The document as plain values. ``noise`` is the machine's known noise floor as a fraction, where there is one."""
    plan = measurement.plan
    arms = plan.arms
    names = [arm.name for arm in arms]
    described = {
        "schema": SCHEMA,
        "version": VERSION,
        "pipeline": pipeline,
        "hardware_class": hardware_class,
        "computation": computation,
        "started": started,
        "seconds": round(seconds, 3),
        "mode": plan.mode.value,
        "stamps": list(stamps),
        "budget": plan.budget,
        "decision": measurement.decision.value,
        "overhead": _estimate(measurement.estimate, names[0], names[1]),
        "further": [
            _estimate(found, name, names[1]) for found, name in zip(measurement.estimates[1:], names[2:], strict=True)
        ],
        "looks": list(plan.looks),
        "noise_floor": {"here": round(measurement.noise_floor, 6), "known": noise},
        "pairs": [
            {"first": names[0] if number % 2 == 0 else names[-1], "log_ratio": round(log_ratio(row[0], row[1]), 9)}
            for number, row in enumerate(measurement.rounds)
        ],
        "arms": [
            _arm(arm.name, arm.purpose, [row[index] for row in measurement.rounds]) for index, arm in enumerate(arms)
        ],
        "breakdown": None
        if not measurement.profiles
        else breakdown(dict(zip(names, measurement.profiles, strict=True)), PROFILE_WARMUP, PROFILE_CLOCKED),
    }
    return {**described, "sentence": sentence(described)}


def _estimate(found: Estimate, over: str, base: str) -> Document:
    def bounds(interval: Interval) -> Document:
        return {
            "lower": round(interval.lower, 6), "upper": round(interval.upper, 6), "level": round(interval.level, 6),
        }  # fmt: skip

    return {
        "arm": over,
        "over": base,
        "estimate": round(found.overhead, 6),
        "pairs": found.pairs,
        "interval": bounds(found.interval),
        "look_level": round(found.look_level, 6),
        "spread": round(found.spread, 6),
    }


def _arm(name: str, purpose: str, launches: Sequence[LaunchTiming]) -> Document:
    steps = sorted(step for launch in launches for step in launch.steps)
    cuts = statistics.quantiles(steps, n=20, method="inclusive")
    median = statistics.median(launch.median for launch in launches)
    return {
        "name": name,
        "purpose": purpose,
        "step_seconds": {
            "median": round(median, 6), "least": round(steps[0], 6), "p5": round(cuts[0], 6), "p25": round(cuts[4], 6),
            "p75": round(cuts[14], 6), "p95": round(cuts[18], 6), "most": round(steps[-1], 6),
        },
        "tokens_per_second": round(launches[0].tokens_per_step / median, 3),
        "peak_memory_bytes": max(launch.peak_memory_bytes for launch in launches),
        "torch": dict(launches[-1].torch),
        "launches": [
            {
                "median": round(launch.median, 6),
                "steps": [round(step, 6) for step in launch.steps],
                "other_cores": round(launch.other_cores, 3),
                "stolen_cores": round(launch.stolen_cores, 3),
                "load_average": round(launch.load_average, 2),
                "gpu": launch.gpu,
            }
            for launch in launches
        ],
    }  # fmt: skip


def render(record: Mapping[str, Any]) -> str:
    """The document as text that ends in a line feed; ASCII only."""
    return json.dumps(record, indent=1, allow_nan=False) + "\n"


def record_schema() -> Document:
    """The JSON Schema (draft 2020-12) of the document."""
    text = files("validator.overhead").joinpath("record.schema.json").read_text(encoding="utf-8")
    schema: Document = json.loads(text)
    return schema


def read_record(file: Path) -> Document:
    """Read one record. Raises ``RecordError``, naming the file, where it is none that this version understands."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise RecordError(f"{file} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError) as error:
        raise RecordError(f"{file} is broken or half-written: no JSON ({error}).") from error
    return checked(content, str(file))


def checked(content: object, name: str) -> Document:
    """``content`` where it is a whole record of this version; raises ``RecordError`` that begins with ``name``."""
    if not isinstance(content, dict) or content.get("schema") != SCHEMA:
        found = content.get("schema") if isinstance(content, dict) else type(content).__name__
        raise RecordError(f"{name} is no overhead record: its schema is {found!r}, and {SCHEMA!r} is wanted.")
    if content.get("version") != VERSION:
        raise RecordError(f"{name} is of version {content.get('version')!r}; this validator reads version {VERSION}.")
    problem = best_match(Draft202012Validator(record_schema()).iter_errors(content))
    if problem is not None:
        where = "/".join(map(str, problem.absolute_path)) or "its top"
        raise RecordError(f"{name} is broken: at {where}, {problem.message[:200]}.")
    if not _is_finite(content):
        raise RecordError(f"{name} is broken: one of its numbers is not finite.")
    try:
        datetime.fromisoformat(content["started"])
    except ValueError as error:
        raise RecordError(f"{name} is broken: started is {content['started'][:40]!r}, and no ISO time.") from error
    return content


def _is_finite(value: object) -> bool:
    """Whether no number within is NaN or infinite: JSON knows neither, and Python reads both."""
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def read_records(paths: Iterable[Path]) -> tuple[list[Document], list[str]]:
    """All records that can be read, and one sentence for each file that is skipped."""
    records, problems = [], []
    for path in paths:
        try:
            records.append(read_record(path))
        except RecordError as error:
            problems.append(str(error))
    return records, problems
