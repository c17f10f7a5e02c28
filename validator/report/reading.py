"""Reads a JSON report back into the :class:`Report` that it was written from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from validator.errors import UsageError
from validator.report.model import SCHEMA, VERSION, Report

#: Where the document keeps fields of the report that do not stand under their own name.
_MOVED = {
    "unused_waivers": ("waivers", "unused"),
    "expired_waivers": ("waivers", "expired"),
    "suggested_waivers": ("waivers", "suggested"),
}


class _WrongError(ValueError):
    """Something in the document is not what the format says; the message names the key."""


def read_report(path: Path) -> Report:
    """The report in a JSON file. ``UsageError`` names a file that is no report, is cut off, or of another version."""
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}); name a JSON report of a check.") from error
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is no JSON, or is cut off; name a whole JSON report of a check.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        found = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise UsageError(f"{path} has schema {found!r}; a report of a check has {SCHEMA!r}.")
    if document.get("version") != VERSION:
        raise UsageError(
            f"{path} has version {document.get('version')!r}, this validator reads version {VERSION}; "
            "render it with the validator that wrote it."
        )
    return from_document(document, str(path))


def from_document(document: Mapping[str, Any], name: str) -> Report:
    """The report in a document that ``json.document`` made. ``UsageError`` says which key of ``name`` is wrong."""
    values = {}
    hints = get_type_hints(Report)
    try:
        for item in fields(Report):
            holder, key = document, item.name
            if item.name in _MOVED:
                outer, key = _MOVED[item.name]
                holder = document.get(outer) or {}
            if key in holder:
                values[item.name] = _value(hints[item.name], holder[key], key)
            elif item.default is MISSING and item.default_factory is MISSING:
                raise _WrongError(f"{key} is missing")
        datetime.fromisoformat(values["started"])
        return Report(**values)
    except _WrongError as error:
        raise UsageError(f"{name} is no report of a check: {error}.") from None
    except ValueError:
        started = str(values["started"])[:40]
        raise UsageError(f"{name} is no report of a check: started is {started!r}, and no ISO time.") from None


def _value(hint: Any, found: Any, key: str) -> Any:
    """``found`` in the type that ``hint`` names."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        if found is None and NoneType in arguments:
            return None
        return _value(next(each for each in arguments if each is not NoneType), found, key)
    if hint in {object, Any}:
        return found
    if origin is tuple:
        return tuple(_value(arguments[0], each, f"{key}[{at}]") for at, each in enumerate(_insist(found, list, key)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        pairs = _insist(found, dict, key).items()
        return {name: _value(arguments[1], each, f"{key}.{name}") for name, each in pairs}
    if is_dataclass(hint):
        return _record(cast("type", hint), _insist(found, dict, key), key)
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(found)
        except ValueError:
            raise _WrongError(f"{key} is {found!r}; values: {', '.join(str(each.value) for each in hint)}") from None
    if hint is float:
        return _number(found, key)
    return _insist(found, hint, key)


def _record(kind: type, found: Mapping[str, Any], key: str) -> Any:
    hints = get_type_hints(kind)
    values = {}
    for item in fields(kind):
        if item.name in found:
            values[item.name] = _value(hints[item.name], found[item.name], f"{key}.{item.name}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise _WrongError(f"{key}.{item.name} is missing")
    return kind(**values)


def _number(found: Any, key: str) -> float:
    """A float; the document writes NaN and infinities as strings."""
    if isinstance(found, bool) or not isinstance(found, (int, float, str)):
        raise _WrongError(f"{key} is {type(found).__name__}, expected a number")
    try:
        return float(found)
    except ValueError:
        raise _WrongError(f"{key} is {found!r}, expected a number") from None


def _insist(found: Any, kind: Any, key: str) -> Any:
    if not isinstance(found, kind) or (isinstance(found, bool) and kind is int):
        raise _WrongError(f"{key} is {type(found).__name__}, expected {kind.__name__}")
    return found
