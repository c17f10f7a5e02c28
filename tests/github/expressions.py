"""GitHub Actions expressions, as far as the workflows use them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r"\s*(\|\||&&|==|!=|!|\(|\)|,|'(?:[^']|'')*'|[A-Za-z_][\w.-]*|\d+)")


def filled(value: Any, context: Mapping[str, Any]) -> Any:
    """A value of the file with its expressions worked out; a value that is one expression keeps its type."""
    if not isinstance(value, str):
        return value
    whole = re.fullmatch(r"\$\{\{((?:(?!\}\}).)*)\}\}", value.strip())
    if whole:
        found = evaluate(whole[1], context)
        return "" if found is None else found
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: _text(evaluate(match[1], context)), value)


def evaluate(text: str, context: Mapping[str, Any]) -> Any:
    """The value of an expression without its braces."""
    tokens = list(_TOKEN.findall(text))
    assert "".join(tokens) == re.sub(r"\s+(?=(?:[^']*'[^']*')*[^']*$)", "", text), text
    found, rest = _or(tokens, context)
    assert not rest, (text, rest)
    return found


def truth(value: Any) -> bool:
    return value not in (None, "", False, 0)


def _or(tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    left, tokens = _and(tokens, context)
    while tokens[:1] == ["||"]:
        right, tokens = _and(tokens[1:], context)
        left = left if truth(left) else right
    return left, tokens


def _and(tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    left, tokens = _equal(tokens, context)
    while tokens[:1] == ["&&"]:
        right, tokens = _equal(tokens[1:], context)
        left = right if truth(left) else left
    return left, tokens


def _equal(tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    left, tokens = _one(tokens, context)
    while tokens[:1] in (["=="], ["!="]):
        right, rest = _one(tokens[1:], context)
        left, tokens = (_text(left) == _text(right)) == (tokens[0] == "=="), rest
    return left, tokens


def _one(tokens: list[str], context: Mapping[str, Any]) -> tuple[Any, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        found, rest = _or(rest, context)
        assert rest[0] == ")"
        return found, rest[1:]
    if first == "!":
        found, rest = _one(rest, context)
        return not truth(found), rest
    if first[0] == "'":
        return first[1:-1].replace("''", "'"), rest
    if rest[:1] == ["("]:
        arguments: list[Any] = []
        rest = rest[1:]
        while rest[0] != ")":
            found, rest = _or(rest, context)
            arguments.append(found)
            rest = rest[1:] if rest[0] == "," else rest
        return _call(first, arguments, context), rest[1:]
    if first.isdigit():
        return int(first), rest
    return _look_up(first, context), rest


def _call(name: str, arguments: list[Any], context: Mapping[str, Any]) -> Any:
    failed = context.get("job", {}).get("failed", False)
    if name == "fromJSON":
        return json.loads(arguments[0])
    if name == "format":
        return str(arguments[0]).format(*map(_text, arguments[1:]))
    return {"always": True, "cancelled": False, "failure": failed, "success": not failed}[name]


def _look_up(name: str, context: Mapping[str, Any]) -> Any:
    if name in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[name]
    found: Any = context
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _text(value: Any) -> str:
    return (
        {None: "", True: "true", False: "false"}.get(value, str(value)) if not isinstance(value, dict) else str(value)
    )
