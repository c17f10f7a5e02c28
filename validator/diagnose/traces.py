"""Module traces of one step, as a launch leaves them behind or a golden keeps them.

A trace is a folder with one file a rank, ``rank-00000.jsonl``, or all of them in one file, compressed.
``docs/localisation.md`` says what each line holds.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from validator.errors import TrajectoryError
from validator.execute.untrusted import read_small

SCHEMA = "validator/trace"
VERSION = 1

#: Phases whose events are of a module, where they do not say otherwise.
_OF_MODULES = frozenset({"forward", "backward"})

#: A rank's trace is never larger than this, in bytes: code under test may write anything.
_LARGEST = 256 * 2**20

#: Nor has it larger numbers, longer names, or a step of more ranks.
_MOST, _LONGEST, _MOST_RANKS = 2**53, 400, 2**20


@dataclass(frozen=True, slots=True)
class Source:
    """Where code stands: class or function, file relative to its package, line."""

    name: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """One call that came to its end, or one state that was read. ``docs/localisation.md`` explains the fields."""

    number: int
    phase: str
    micro_batch: int | None
    module: str
    name: str
    call: int | None
    parent: int | None
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    source: Source = Source()
    ranks: tuple[int, ...] = ()
    nth: int = 0
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """All ranks' events of one step, each rank's in the order in which they ended."""

    step: int
    events: Mapping[int, tuple[Event, ...]]


def read_trace(place: Path) -> Trace:
    """The trace in a folder or a compressed file; ``TrajectoryError`` where it is missing, cut off or garbled."""
    if place.is_dir():
        files = sorted(place.glob("rank-*.jsonl"))
        texts = [(str(file), _content(file)) for file in files]
    else:
        texts = [(str(place), _unpacked(place))]
    events: dict[int, tuple[Event, ...]] = {}
    steps, sizes = set(), set()
    for name, text in texts:
        for header, found in _ranks(text, name):
            steps.add(header["step"])
            sizes.add(header["world_size"])
            events[header["rank"]] = found
    if len(steps) != 1 or sizes != {len(events)}:  # each rank's number is below the size
        raise TrajectoryError(f"{place} holds no whole trace of one step: a rank's file is missing.")
    return Trace(steps.pop(), dict(sorted(events.items())))


def pack_trace(folder: Path) -> bytes:
    """All ranks' files of a trace in one, compressed; raises ``TrajectoryError`` where the trace is not whole."""
    read_trace(folder)
    return lzma.compress(b"".join(_content(file) for file in sorted(folder.glob("rank-*.jsonl"))), preset=9)


def _content(file: Path) -> bytes:
    content = read_small(file, _LARGEST)
    if content is None:
        raise TrajectoryError(f"{file} is no plain file of a sensible size.")
    return content


def _unpacked(file: Path) -> bytes:
    try:
        packed = file.read_bytes()
        return lzma.LZMADecompressor().decompress(packed, max_length=_LARGEST)
    except OSError as error:
        raise TrajectoryError(f"{file} cannot be read ({error.strerror}).") from error
    except (lzma.LZMAError, EOFError, ValueError) as error:
        raise TrajectoryError(f"{file} is no compressed trace, or is cut off.") from error


def _ranks(text: bytes, name: str) -> Iterator[tuple[dict[str, Any], tuple[Event, ...]]]:
    """Each rank's header and events; several may follow one another."""
    header: dict[str, Any] | None = None
    modules: dict[str, Source] = {}
    events: list[Event] = []
    try:
        for line in text.splitlines():
            found = json.loads(line)
            if "schema" in found:
                header, modules, events = _header(found, name), {}, []
            elif "event" in found:
                events.append(_event(found))
            elif "end" in found:
                if header is None or found["events"] != len(events):
                    _garbled(name)
                yield header, tuple(_placed(event, modules) for event in events)
                header = None
            else:
                modules[_text(found["module"])] = _source(found)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _garbled(name)
    if header is not None:
        _garbled(name)


def _header(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    if (found["schema"], found["version"]) != (SCHEMA, VERSION):
        said = f"{found['schema']!r:.100}, version {found['version']!r:.100}"
        raise TrajectoryError(f"{name} has schema {said}; this program reads {SCHEMA}, version {VERSION}.")
    header = {key: _integer(found[key]) for key in ("step", "rank", "world_size")}
    if not 0 <= header["rank"] < header["world_size"] <= _MOST_RANKS:
        _garbled(name)
    return header


def _event(found: Mapping[str, Any]) -> Event:
    call, parent = _optional(found["call"]), _optional(found["parent"])
    if call is not None and parent is not None and parent >= call:
        raise ValueError("a call within one that began later")
    return Event(
        number=_integer(found["event"]),
        phase=_text(found["phase"]),
        micro_batch=_optional(found["micro_batch"]),
        module=_text(found["module"]),
        name=_text(found["name"]),
        call=call,
        parent=parent,
        inputs=_digests(found["inputs"]),
        outputs=_digests(found["outputs"]),
        source=_source(found) if "class" in found else Source(),
        ranks=tuple(map(_integer, found.get("ranks", ()))),
        nth=_integer(found.get("nth", 0)),
        kind=_text(found.get("kind", "")),
    )


def _placed(event: Event, modules: Mapping[str, Source]) -> Event:
    outside = event.call is None and not event.module
    if event.source != Source() or outside or event.module not in modules or event.phase not in _OF_MODULES:
        return event
    return Event(
        event.number, event.phase, event.micro_batch, event.module, event.name, event.call, event.parent,
        event.inputs, event.outputs, modules[event.module],
    )  # fmt: skip


def _source(found: Mapping[str, Any]) -> Source:
    return Source(_text(found["class"]), _text(found["file"]), _integer(found["line"]))


def _optional(value: object) -> int | None:
    return None if value is None else _integer(value)


def _integer(value: object) -> int:
    if type(value) is not int or not -_MOST <= value <= _MOST:
        raise ValueError("a number that no launch writes")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError("a name that no launch writes")
    return value


def _digests(found: Mapping[str, str]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in found.items()}


def _garbled(name: str) -> NoReturn:
    raise TrajectoryError(f"{name} is cut off, or no trace of a launch.")
