"""The report for programs: one JSON document, described by ``report.schema.json`` beside this file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.resources import files

from validator.report.model import SCHEMA, VERSION, Report

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def render_json(report: Report) -> str:
    """The document as text that ends in a line feed: ASCII only, so that no control character survives in it."""
    return json.dumps(document(report), indent=2, allow_nan=False) + "\n"


def document(report: Report) -> dict[str, Json]:
    """The document as plain values; ``docs/report-format.md`` says what each key holds."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "verdict": report.verdict.value,
        "exit_code": report.verdict.exit_code,
        "sentence": report.sentence,
        "pipeline": report.pipeline,
        "hardware_class": report.hardware_class,
        "started": report.started,
        "seconds": plain(report.seconds),
        "stamps": plain(report.stamps),
        "gates": plain(report.gates),
        "divergence": plain(report.divergence),
        "localisation": plain(report.localisation),
        "golden": plain(report.golden),
        "environment_difference": plain(report.environment_difference),
        "waivers": {
            "seen": [plain(finding) for gate in report.gates for finding in gate.waived],
            "unused": plain(report.unused_waivers),
            "expired": plain(report.expired_waivers),
            "suggested": report.suggested_waivers,
        },
        "unexercised": plain(report.unexercised),
        "steps": plain(report.steps),
        "launches": plain(report.launches),
        "reproduce": report.reproduce,
        "next_step": report.next_step,
        "out": report.out,
        "environment": plain(report.environment),
        "overhead": plain(report.overhead),
        "base": report.base,
        "policy_changes": plain(report.policy_changes),
        "new_golden": plain(report.new_golden),
    }


def report_schema() -> dict[str, Json]:
    """The JSON Schema (draft 2020-12) of the document."""
    text = files("validator.report").joinpath("report.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Json] = json.loads(text)
    return schema


def plain(value: object) -> Json:
    """``value`` in JSON's own types; a float that JSON lacks (NaN, infinities) becomes its name as a string."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if is_dataclass(value):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    return str(value)
