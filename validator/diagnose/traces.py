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
    if len(steps) != 1 or len(sizes) != 1 or sorted(events) != list(range(sizes.copy().pop())):
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
                modules[str(found["module"])] = Source(str(found["class"]), str(found["file"]), int(found["line"]))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _garbled(name)
    if header is not None:
        _garbled(name)


def _header(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    if (found["schema"], found["version"]) != (SCHEMA, VERSION):
        said = f"{found['schema']!r}, version {found['version']!r}"
        raise TrajectoryError(f"{name} has schema {said}; this program reads {SCHEMA}, version {VERSION}.")
    return {key: int(found[key]) for key in ("step", "rank", "world_size")}


def _event(found: Mapping[str, Any]) -> Event:
    return Event(
        number=int(found["event"]),
        phase=str(found["phase"]),
        micro_batch=_optional(found["micro_batch"]),
        module=str(found["module"]),
        name=str(found["name"]),
        call=_optional(found["call"]),
        parent=_optional(found["parent"]),
        inputs=_digests(found["inputs"]),
        outputs=_digests(found["outputs"]),
        source=Source(str(found.get("class", "")), str(found.get("file", "")), int(found.get("line", 0))),
        ranks=tuple(int(rank) for rank in found.get("ranks", ())),
        nth=int(found.get("nth", 0)),
        kind=str(found.get("kind", "")),
    )


def _placed(event: Event, modules: Mapping[str, Source]) -> Event:
    outside = event.call is None and not event.module
    if event.source != Source() or outside or event.module not in modules or event.phase not in _OF_MODULES:
        return event
    return Event(
        event.number, event.phase, event.micro_batch, event.module, event.name, event.call, event.parent,
        event.inputs, event.outputs, modules[event.module],
    )  # fmt: skip


def _optional(value: object) -> int | None:
    return None if value is None else int(str(value))


def _digests(found: Mapping[str, str]) -> dict[str, str]:
    return {str(name): str(value) for name, value in found.items()}


def _garbled(name: str) -> NoReturn:
    raise TrajectoryError(f"{name} is cut off, or no trace of a launch.")
