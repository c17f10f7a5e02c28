"""Reads a rank's text file as it grows: finished moments come out, an unfinished tail stays inside.

A file that was cut anywhere yields the moments before the cut. A line that is whole and makes no sense was never
written by a writer: the file was edited, or is something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from validator.errors import TrajectoryError
from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import RANK_SCHEMA, VERSION
from validator.trajectory.leaves import ALGORITHMS, DIGEST_BYTES, Algorithm, LeafKey, LeafTable
from validator.trajectory.lines import parse_key
from validator.trajectory.metrics import Metric, parse_metric

_parse_moment = lru_cache(maxsize=65536)(Moment.parse)
_GROUPS = {str(group): group for group in Group}
_POSITIONS = {group: position for position, group in enumerate(Group)}
_SEAL = re.compile("[0-9a-f]{32}")

#: No tensor has more dimensions, and no moment's name more characters: what has was not written by a writer.
_MOST_DIMENSIONS, _MOMENT_CHARACTERS = 64, 40

#: Characters of a line that a message quotes.
_QUOTED = 200


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
    _tail: bytes = b""
    # Of the moment that is not finished yet: where it begins, and what its lines said so far.
    _begin: int | None = None
    _leaves_begin: int = 0
    _leaves_end: int = 0
    _table_at: int = 0
    _leaves_to_come: int = 0
    _keys: list[LeafKey] = field(default_factory=list)
    _new_tables: list[PlacedTable] = field(default_factory=list)
    _metrics: dict[str, Metric] = field(default_factory=dict)
    _groups: dict[Group, GroupEntry] = field(default_factory=dict)

    def feed(self, data: bytes) -> list[RankMoment]:
        """The moments that ``data``, the next bytes of the file, finishes."""
        finished: list[RankMoment] = []
        data, start = self._tail + data, 0
        while (stop := data.find(b"\n", start)) >= 0:  # line by line: what is no line of a writer is never kept
            line, start = data[start:stop], stop + 1
            at, self._offset = self._offset, self._offset + len(line) + 1
            try:
                fields = json.loads(line.decode())
                if not isinstance(fields, dict):
                    raise ValueError("no object")
                moment = self._take(at, fields)
            except TrajectoryError:
                raise
            except RecursionError:
                raise self._edited(at, "nested too deep") from None
            except (ArithmeticError, ValueError, KeyError, TypeError, IndexError) as problem:
                raise self._edited(at, str(problem)) from None
            if moment is not None:
                finished.append(moment)
        self._tail = data[start:]
        return finished

    @property
    def unfinished(self) -> bool:
        """Whether bytes follow the last closing line."""
        return bool(self._tail) or self._begin is not None

    def _take(self, at: int, fields: dict[str, Any]) -> RankMoment | None:
        kind = next(iter(fields), "")
        if self.end is not None:
            raise self._edited(at, "a line after the end record")
        if self.world_size is None:
            self._take_header(fields)
            self.header_bytes = self._offset
        elif kind == "end":
            self._take_end(at, fields)
        else:
            if self._begin is None:
                self._begin = at
            if self._leaves_to_come:
                self._take_leaf(kind, fields)
            elif kind == "metric":
                name, metric = parse_metric(fields)
                self._metrics[name] = metric
            elif kind == "group":
                self._take_group(fields)
            elif kind == "table":
                self._take_table(at, fields)
            elif kind == "moment":
                return self._take_moment(at, fields)
            else:
                raise self._edited(at, "an unknown kind of line")
        return None

    def _take_header(self, fields: dict[str, Any]) -> None:
        if fields.get("schema") != RANK_SCHEMA:
            raise TrajectoryError(f"{self.name} is foreign: it does not begin with a header of schema {RANK_SCHEMA!r}")
        if fields["version"] != VERSION:
            raise TrajectoryError(
                f"{self.name} has version {fields['version']!r:.{_QUOTED}}, this validator reads version {VERSION}; "
                "read it with the validator that wrote it"
            )
        self.algorithm = ALGORITHMS.get(fields["algorithm"])
        if self.algorithm is None:
            known = " and ".join(map(repr, ALGORITHMS))
            raise TrajectoryError(
                f"{self.name} is foreign: its digests are {fields['algorithm']!r:.{_QUOTED}}, "
                f"this validator knows {known}"
            )
        if fields["rank"] != self.rank:
            raise TrajectoryError(f"{self.name} is foreign: its header says rank {fields['rank']!r:.{_QUOTED}}")
        self.world_size = _count(fields["world_size"])

    def _take_end(self, at: int, fields: dict[str, Any]) -> None:
        if not isinstance(fields["end"], dict):
            raise ValueError("an end record that is no mapping")
        self.end = End(fields["end"], _count(fields["moments"]), at, _seal(fields))
        if self._begin is not None or self.end.moments != self._moments:
            raise self._edited(at, "an end record that does not fit the moments before it")

    def _take_table(self, at: int, fields: dict[str, Any]) -> None:
        number = len(self.tables) + len(self._new_tables)
        if _count(fields["table"]) != number or len(self._new_tables) == len(Group):
            raise ValueError("a table out of order")
        self._table_at, self._leaves_to_come = at, _count(fields["leaves"])
        self._end_table()

    def _take_leaf(self, kind: str, fields: dict[str, Any]) -> None:
        if kind != "leaf":
            raise self._edited(self._table_at, "a table with too few leaves")
        self._keys.append(_key(fields))
        self._leaves_to_come -= 1
        self._end_table()

    def _end_table(self) -> None:
        if not self._leaves_to_come:
            self._new_tables.append(PlacedTable(LeafTable(tuple(self._keys)), self._table_at))
            self._keys.clear()

    def _take_group(self, fields: dict[str, Any]) -> None:
        table, leaves = _count(fields["table"]), _count(fields["leaves"])
        old = len(self.tables)
        placed = self.tables[table] if table < old else self._new_tables[table - old]
        if leaves != len(placed.table):
            raise ValueError("a group whose leaves do not fit its table")
        group = _GROUPS[fields["group"]]
        if self._groups and _POSITIONS[next(reversed(self._groups))] >= _POSITIONS[group]:
            raise ValueError(f"group {group} out of order")
        self._groups[group] = GroupEntry(table, leaves, bytes.fromhex(fields["digest"]), self._leaves_end)
        self._leaves_end += leaves * DIGEST_BYTES

    def _take_moment(self, at: int, fields: dict[str, Any]) -> RankMoment:
        if len(fields["moment"]) > _MOMENT_CHARACTERS:
            raise ValueError("no moment of a launch")
        moment = _parse_moment(fields["moment"])
        if self._last is not None and not self._last < moment:
            raise ValueError(f"{moment} after {self._last}")
        assert self._begin is not None
        finished = RankMoment(
            moment,
            bytes.fromhex(fields["digest"]),
            self._groups,
            self._metrics,
            self._begin,
            at,
            self._offset,
            self._leaves_begin,
            self._leaves_end,
            _seal(fields),
        )
        self.tables += self._new_tables
        self._begin, self._leaves_begin = None, self._leaves_end
        self._groups, self._metrics, self._new_tables = {}, {}, []
        self._last = moment
        self._moments += 1
        return finished

    def _edited(self, at: int, problem: str) -> TrajectoryError:
        return TrajectoryError(
            f"{self.name} was edited: the line at byte {at} is none that a writer wrote ({problem[:_QUOTED]})"
        )


def _count(value: object) -> int:
    """A whole number that is not negative; ``ValueError`` for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.{_QUOTED}} is no count")
    return value


def _seal(fields: Mapping[str, Any]) -> str:
    """The seal of a closing line, in form; whether it fits is seen by who has what comes before it."""
    seal = fields["seal"]
    if _SEAL.fullmatch(seal) is None:
        raise ValueError("a seal that is none")
    return str(seal)


def _key(fields: Mapping[str, Any]) -> LeafKey:
    """The key of a ``leaf`` line; ``ValueError`` for a name that no writer takes."""
    key = parse_key(fields)
    if "\n" in key.name or len(key.shape) > _MOST_DIMENSIONS:
        raise ValueError("a leaf's name has a line break, or its shape too many dimensions")
    f"{key.name}{key.dtype}{key.shard}".encode()  # half a character is a ValueError
    return key
