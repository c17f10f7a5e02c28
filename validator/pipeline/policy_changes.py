"""How two policies differ, for people: a change to the policy is shown, and has no effect on its own check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from enum import Enum

from validator.pipeline.model import Policy
from validator.pipeline.waivers import Waiver


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """One value of the policy, ``None`` where one side lacks it; ``key`` is dotted from ``policy``."""

    key: str
    before: str | None
    after: str | None


def policy_changes(before: Policy, after: Policy) -> tuple[PolicyChange, ...]:
    """Every value that is not what it was, in the order of the keys."""
    old, new = _flat("", before), _flat("", after)
    keys = dict.fromkeys([*old, *new])
    return tuple(PolicyChange(key, old.get(key), new.get(key)) for key in keys if old.get(key) != new.get(key))


def _flat(key: str, value: object) -> dict[str, str]:
    if isinstance(value, Waiver):
        about = f"{value.reason} ({value.link}), until {value.expires.isoformat()}"
        return {f"{key}.{value.name}": f"{'; '.join(map(str, value.seen))}: {about}"}
    if is_dataclass(value) and not isinstance(value, type):
        return _merged((_under(key, item.name), getattr(value, item.name)) for item in fields(value))
    if isinstance(value, Mapping):
        return _merged((_under(key, str(name)), item) for name, item in value.items())
    if isinstance(value, (tuple, list)):
        if value and all(isinstance(item, Waiver) for item in value):
            return _merged((key, item) for item in value)
        return {key: ", ".join(_text(item) for item in value)} if value else {}
    return {key: _text(value)}


def _merged(pairs: Iterable[tuple[str, object]]) -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in pairs:
        for name, text in _flat(key, value).items():
            flat[name] = f"{flat[name]}; {text}" if name in flat else text
    return flat


def _under(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _text(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, date):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return " ".join(f"{item.name} {_text(getattr(value, item.name))}" for item in fields(value))
    return str(value)
