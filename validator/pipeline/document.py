"""A YAML file as nodes that know their place, so that an error names file, line and key."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import NoReturn

import yaml

from validator.errors import UsageError

_SHOWN_CHARACTERS = 60
_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_STRING_TAG = "tag:yaml.org,2002:str"
_NULL_TAG = "tag:yaml.org,2002:null"
_MERGE_TAG = "tag:yaml.org,2002:merge"


def shown(value: object) -> str:
    """``value`` for an error message: one line, quoted, shortened to 60 characters."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def suggestion(word: str, words: Collection[str]) -> str:
    """``" (did you mean 'steps'?)"`` where one of ``words`` is close to ``word``, else nothing."""
    close = difflib.get_close_matches(word, words, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def named(words: Collection[str]) -> str:
    """``a, b or c``"""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file a value stands; ``line`` counts from 1, ``key`` is dotted from the file's top."""

    file: Path
    line: int
    key: str

    def refuse(self, problem: str) -> NoReturn:
        """Raise the ``UsageError`` that says ``problem`` (a clause without a full stop) about this place."""
        raise UsageError(f"{self.file}:{self.line}: {self.key or 'the file'} {problem}.")


@dataclass(frozen=True, slots=True)
class Item:
    """One value of the file. The accessors give it in the type that is wanted or raise ``UsageError``."""

    place: Place
    node: yaml.Node

    def mapping(self, required: Collection[str], optional: Collection[str] = ()) -> Mapping:
        """The value as a mapping that has all ``required`` keys and beyond them only ``optional`` ones."""
        items = dict(self.pairs())
        known = [*required, *optional]
        for key, item in items.items():
            if key not in known:
                where = f"in {self.place.key}" if self.place.key else "at the top of the file"
                problem = f"is not a known key{suggestion(key, known)}; accepted {where} are {named(known)}"
                Place(item.place.file, item.place.line, shown(key)).refuse(problem)
        for key in required:
            if key not in items:
                self.place.refuse(f"lacks the key {key!r}; needed are {', '.join(required)}")
        return Mapping(self.place, items)

    def pairs(self) -> Iterator[tuple[str, Item]]:
        """The value as a mapping with any keys; a key that stands twice or is no plain word is refused."""
        if not isinstance(self.node, yaml.MappingNode):
            self.place.refuse(f"is {self._found()}; accepted is a mapping (key: value)")
        seen = set()
        for key_node, value_node in self.node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode) or key_node.tag == _MERGE_TAG:
                Place(self.place.file, line, self.place.key).refuse(
                    "has a key that is no plain word; write each key out"
                )
            key = key_node.value
            place = Place(self.place.file, line, f"{self.place.key}.{key}" if self.place.key else key)
            if key in seen:
                Place(place.file, line, _one_line(place.key)).refuse("stands twice; keep one of the two")
            seen.add(key)
            yield key, Item(Place(place.file, line, _one_line(place.key)), value_node)

    def items(self) -> list[Item]:
        """The value as a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.place.refuse(f"is {self._found()}; accepted is a list")
        return [
            Item(Place(self.place.file, node.start_mark.line + 1, f"{self.place.key}[{index}]"), node)
            for index, node in enumerate(self.node.value)
        ]

    def raw(self, accepted: str) -> str:
        """The value's own characters, whatever YAML makes of them: ``off`` stays ``off``."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == _NULL_TAG:
            self.place.refuse(f"is {self._found()}; accepted is {accepted}")
        return str(self.node.value)

    def text(self, accepted: str = "a text that is not empty") -> str:
        """The value as a text with at least one visible character."""
        text = self.raw(accepted)
        if self.node.tag != _STRING_TAG or not text.strip():
            self.place.refuse(f"is {self._found()}; accepted is {accepted} (in quotes if need be)")
        return text

    def integer(self, low: int, high: int) -> int:
        """The value as a plain decimal integer within ``low`` … ``high``."""
        accepted = f"an integer from {low} to {high}"
        text = self.raw(accepted)
        quoted = isinstance(self.node, yaml.ScalarNode) and self.node.style is not None
        if quoted or not _INTEGER.fullmatch(text) or not low <= int(text) <= high:
            self.place.refuse(f"is {self._found()}; accepted is {accepted}")
        return int(text)

    def choice[Choice: StrEnum](self, choices: type[Choice]) -> Choice:
        """The value as a member of ``choices``."""
        words = [str(choice) for choice in choices]
        text = self.raw(named(words))
        if text not in words:
            self.place.refuse(f"is {shown(text)}{suggestion(text, words)}; accepted is {named(words)}")
        return choices(text)

    def date(self) -> date:
        """The value as a calendar date, YYYY-MM-DD."""
        accepted = "a date written YYYY-MM-DD"
        text = self.raw(accepted)
        try:
            day = date.fromisoformat(text) if _DATE.fullmatch(text) else None
        except ValueError:
            day = None
        if day is None:
            self.place.refuse(f"is {self._found()}; accepted is {accepted}")
        return day

    def _found(self) -> str:
        if isinstance(self.node, yaml.MappingNode):
            return "a mapping"
        if isinstance(self.node, yaml.SequenceNode):
            return "a list"
        return "empty" if self.node.tag == _NULL_TAG else shown(self.node.value)


@dataclass(frozen=True, slots=True)
class Mapping:
    """A mapping whose keys are known to be the accepted ones."""

    place: Place
    values: dict[str, Item]

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __getitem__(self, key: str) -> Item:
        return self.values[key]


def read_document(file: Path) -> Item:
    """The top of a YAML file; raises ``UsageError`` where it cannot be read or is no YAML."""
    top = Place(file, 1, "")
    try:
        text = file.read_bytes().decode("utf-8")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}): name a readable pipeline file.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: byte {error.start} is no UTF-8 text; save the file as UTF-8.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "a character that YAML does not allow"
        line = mark.line + 1 if mark is not None else 1
        Place(file, line, "").refuse(f"is no valid YAML: {_one_line(str(problem))}")
    except (RecursionError, ValueError):
        top.refuse("is no valid YAML: nested too deeply or with a malformed value")
    if node is None:
        top.refuse("is empty; accepted is a pipeline with name, description, computation and policy")
    return Item(top, node)


def _one_line(text: str) -> str:
    return text if text.isprintable() and len(text) <= _SHOWN_CHARACTERS * 2 else shown(text)
