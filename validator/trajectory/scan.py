"""Reads a rank's text file as it grows: finished moments come out, an unfinished tail stays inside.

A file that was cut anywhere yields the moments before the cut. A line that is whole and makes no sense was never
written by a writer: the file was edited, or is something else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from validator.errors import TrajectoryError
from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import RANK_SCHEMA, VERSION
from validator.trajectory.leaves import ALGORITHMS, DIGEST_BYTES, Algorithm, LeafTable
from validator.trajectory.lines import parse_key
from validator.trajectory.metrics import Metric

_parse_moment = lru_cache(maxsize=65536)(Moment.parse)
_GROUPS = {str(group): group for group in Group}
_POSITIONS = {group: position for position, group in enumerate(Group)}


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """One group of a finished moment: its table's number in the file, and its byte offset ``at`` in the leaves."""

    table: int
    leaves: int
    digest: bytes
    at: int


@dataclass(frozen=True, slots=True)
class RankMoment:
    """One finished moment of one rank.

    Its lines are the bytes ``at`` to ``end`` of the text file, the closing line starts at ``closing``; its leaf digests
    are the bytes ``leaves_at`` to ``leaves_end`` of the leaves file.
    """

    moment: Moment
    digest: bytes
    groups: Mapping[Group, GroupEntry]
    metrics: Mapping[str, Metric]
    at: int
    closing: int
    end: int
    leaves_at: int
    leaves_end: int
    seal: str


@dataclass(frozen=True, slots=True)
class End:
    """The end record, which only a launch that came to its end has; its line starts at byte ``at`` of the text file."""

    ending: Mapping[str, Any]
    moments: int
    at: int
    seal: str


@dataclass(frozen=True, slots=True)
class PlacedTable:
    """A leaf table and the byte offset of its first line in the text file."""

    table: LeafTable
    at: int


@dataclass(slots=True)
class RankScanner:
    """Takes a rank's text in pieces of any size; ``name`` is the file's, for messages.

    Raises ``TrajectoryError`` where the text is not one that a writer of this version wrote.
    """

    name: str
    rank: int
    world_size: int | None = None
    algorithm: Algorithm | None = None
    tables: list[PlacedTable] = field(default_factory=list)
    end: End | None = None
    header_bytes: int = 0
    _moments: int = 0
    _last: Moment | None = None
    _offset: int = 0
    _leaves_at: int = 0
    _tail: bytes = b""
    _lines: list[tuple[int, dict[str, Any]]] = field(default_factory=list)

    def feed(self, data: bytes) -> list[RankMoment]:
        """The moments that ``data``, the next bytes of the file, finishes."""
        finished: list[RankMoment] = []
        *whole, self._tail = (self._tail + data).split(b"\n")
        for line in whole:
            at, self._offset = self._offset, self._offset + len(line) + 1
            try:
                fields = json.loads(line.decode())
                if not isinstance(fields, dict):
                    raise ValueError("no object")
                moment = self._take(at, fields)
            except TrajectoryError:
                raise
            except (ValueError, KeyError, TypeError, IndexError) as problem:
                raise self._edited(at, str(problem)) from None
            if moment is not None:
                finished.append(moment)
        return finished

    @property
    def unfinished(self) -> bool:
        """Whether bytes follow the last closing line."""
        return bool(self._tail or self._lines)

    def _take(self, at: int, fields: dict[str, Any]) -> RankMoment | None:
        if self.end is not None:
            raise self._edited(at, "a line after the end record")
        if self.world_size is None:
            self._take_header(fields)
            self.header_bytes = self._offset
        elif "end" in fields:
            self.end = End(fields["end"], int(fields["moments"]), at, fields["seal"])
            if self._lines or self.end.moments != self._moments:
                raise self._edited(at, "an end record that does not fit the moments before it")
        elif "moment" in fields:
            return self._take_moment(at, fields)
        else:
            self._lines.append((at, fields))
        return None

    def _take_header(self, fields: dict[str, Any]) -> None:
        if fields.get("schema") != RANK_SCHEMA:
            raise TrajectoryError(f"{self.name} is foreign: it does not begin with a header of schema {RANK_SCHEMA!r}")
        if fields["version"] != VERSION:
            raise TrajectoryError(
                f"{self.name} has version {fields['version']}, this validator reads version {VERSION}; "
                "read it with the validator that wrote it"
            )
        self.algorithm = ALGORITHMS.get(fields["algorithm"])
        if self.algorithm is None:
            known = " and ".join(map(repr, ALGORITHMS))
            raise TrajectoryError(
                f"{self.name} is foreign: its digests are {fields['algorithm']!r}, this validator knows {known}"
            )
        if fields["rank"] != self.rank:
            raise TrajectoryError(f"{self.name} is foreign: its header says rank {fields['rank']}")
        self.world_size = int(fields["world_size"])

    def _take_moment(self, at: int, fields: dict[str, Any]) -> RankMoment:
        moment = _parse_moment(fields["moment"])
        if self._last is not None and not self._last < moment:
            raise self._edited(at, f"{moment} after {self._last}")
        begin = self._lines[0][0] if self._lines else at
        metrics: dict[str, Metric] = {}
        groups: dict[Group, GroupEntry] = {}
        leaves_at = self._leaves_at
        pending = iter(self._lines)
        for line_at, line in pending:
            if "metric" in line:
                metrics[line["metric"]] = Metric(line["dtype"], line["bits"])
            elif "group" in line:
                entry = GroupEntry(line["table"], line["leaves"], bytes.fromhex(line["digest"]), self._leaves_at)
                if entry.leaves != len(self.tables[entry.table].table):
                    raise self._edited(line_at, "a group whose leaves do not fit its table")
                group = _GROUPS[line["group"]]
                if groups and _POSITIONS[next(reversed(groups))] >= _POSITIONS[group]:
                    raise self._edited(line_at, f"group {group} out of order")
                groups[group] = entry
                self._leaves_at += entry.leaves * DIGEST_BYTES
            elif "table" in line:
                if line["table"] != len(self.tables):
                    raise self._edited(line_at, "a table out of order")
                keys = tuple(parse_key(leaf) for _, leaf in islice(pending, line["leaves"]))
                if len(keys) != line["leaves"]:
                    raise self._edited(line_at, "a table with too few leaves")
                self.tables.append(PlacedTable(LeafTable(keys), line_at))
            else:
                raise self._edited(line_at, "an unknown kind of line")
        self._lines.clear()
        self._last = moment
        self._moments += 1
        return RankMoment(
            moment,
            bytes.fromhex(fields["digest"]),
            groups,
            metrics,
            begin,
            at,
            self._offset,
            leaves_at,
            self._leaves_at,
            fields["seal"],
        )

    def _edited(self, at: int, problem: str) -> TrajectoryError:
        return TrajectoryError(f"{self.name} was edited: the line at byte {at} is none that a writer wrote ({problem})")
