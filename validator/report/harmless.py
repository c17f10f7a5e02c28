"""A report whose every string can be shown: what came from outside can neither move a cursor nor hide itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import cast

from validator.report.model import Report
from validator.report.text import printable, printable_lines


def harmless(report: Report) -> Report:
    """The same report with control, format and unassigned characters written as escapes, in every string it holds."""
    clean = cast("Report", _clean(report))
    # Three texts have line feeds that are meant.
    return replace(
        clean,
        suggested_waivers=printable_lines(report.suggested_waivers),
        reproduce=printable_lines(report.reproduce),
        next_step=printable_lines(report.next_step),
    )


def harmless_text[Value](value: Value) -> Value:
    """The same value, of whatever dataclass, with every string it holds made printable on one line."""
    return cast("Value", _clean(value))


def _clean(value: object) -> object:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_clean(item) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{item.name: _clean(getattr(value, item.name)) for item in fields(value)})
    return value
