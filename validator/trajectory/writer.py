"""The writing side, which runs inside a launch: one writer a rank. Needs the standard library and xxhash only.

A process that is killed at any point leaves every finished moment readable: leaf digests are handed to the operating
system first, then the moment's lines in one write, and a moment counts only with its closing line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import xxhash

from validator.errors import TrajectoryError
from validator.trajectory import lines
from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import leaves_name, text_name
from validator.trajectory.leaves import XXH3, Algorithm, LeafTable, fold_named
from validator.trajectory.metrics import Metric
from validator.trajectory.record import GroupRecord, metric_record, metric_table


class RankWriter:
    """Writes one rank's files as the run goes. ``algorithm`` is that of the leaf digests it is given.

    Creates ``rank-00000.jsonl`` and ``rank-00000.leaves`` in ``directory``; ``TrajectoryError`` where they exist.
    """

    def __init__(self, directory: Path, rank: int, world_size: int, algorithm: Algorithm = XXH3) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} of {world_size}; ranks count from 0")
        directory.mkdir(parents=True, exist_ok=True)
        self._leaves = _create(directory / leaves_name(rank))
        self._text = _create(directory / text_name(rank))
        self._algorithm = algorithm
        self._chain = xxhash.xxh3_128()
        self._tables: dict[LeafTable, int] = {}
        # Hashing a table costs more than all else here; a table that was seen as this very object is not hashed again.
        # The value keeps the table alive, so that its id is not given to another.
        self._seen: dict[int, tuple[LeafTable, int]] = {}
        self._metric_tables: dict[tuple[tuple[str, str], ...], LeafTable] = {}
        self._metric_names: dict[str, str] = {}
        self._last: Moment | None = None
        self._moments = 0
        self._open = True
        header = lines.header_line(rank, world_size, algorithm).encode()
        self._chain.update(header)
        self._put(self._text, header)

    def append(self, moment: Moment, groups: Mapping[Group, GroupRecord], metrics: Mapping[str, Metric]) -> None:
        """Write one moment; it survives the process when this returns (it is not synced to the disk).

        The ``metrics`` group is made here from ``metrics`` and must not be in ``groups``. Moments come in the order of
        time. Raises ``ValueError`` for anything else, and ``OSError`` where the disk is full.
        """
        if Group.METRICS in groups:
            raise ValueError("the group 'metrics' is made from the metrics; leave it out of the groups")
        if self._last is not None and not self._last < moment:
            raise ValueError(f"moment {moment} comes after {self._last}; moments are appended in the order of time")
        records = dict(groups)
        if metrics:
            shape = tuple((name, metric.dtype) for name, metric in metrics.items())
            table = self._metric_tables.get(shape)
            if table is None:
                table = self._metric_tables[shape] = metric_table(metrics)
            records[Group.METRICS] = metric_record(metrics, table, self._algorithm)

        text: list[str] = []
        group_lines: list[str] = []
        digests: list[tuple[str, bytes]] = []
        leaves: list[bytes] = []
        for group in Group:
            record = records.get(group)
            if record is None:
                continue
            digest = record.digest
            index = self._table_index(record.table, text)
            group_lines.append(lines.group_line(group, index, len(record.table), digest))
            digests.append((group, digest))
            leaves.append(record.digests)
        text.extend(lines.metric_line(self._encoded(name), metric) for name, metric in metrics.items())
        text.extend(group_lines)

        body = "".join(text).encode()
        content = b"".join(leaves)
        closing = self._closing(body, content, lines.moment_line(moment, fold_named(digests)))
        self._put(self._leaves, content)
        self._put(self._text, body + closing)
        self._last = moment
        self._moments += 1

    def close(self, ending: Mapping[str, object]) -> None:
        """Write the end record, which only a launch that came to its end has, and close the files."""
        self._put(self._text, self._closing(b"", b"", lines.end_line(self._moments, ending)))
        self.abandon()

    def abandon(self) -> None:
        """Close the files without an end record: the trajectory stays incomplete. May be called again."""
        if self._open:
            self._open = False
            os.close(self._text)
            os.close(self._leaves)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()

    def _closing(self, body: bytes, content: bytes, line: str) -> bytes:
        """The closing line with its seal; the chain then covers all of it."""
        self._chain.update(body)
        self._chain.update(content)
        self._chain.update(line.encode())
        closing = lines.sealed(line, self._chain.digest()).encode()
        self._chain.update(closing[-lines.SEAL_SUFFIX_BYTES :])
        return closing

    def _put(self, descriptor: int, data: bytes) -> None:
        if not self._open:
            raise ValueError("this rank's files are closed")
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError:
            self.abandon()  # nothing may follow a line that was cut short
            raise

    def _encoded(self, name: str) -> str:
        encoded = self._metric_names.get(name)
        if encoded is None:
            encoded = self._metric_names[name] = json.dumps(name, ensure_ascii=False)
        return encoded

    def _table_index(self, table: LeafTable, text: list[str]) -> int:
        seen = self._seen.get(id(table))
        if seen is not None:
            return seen[1]
        index = self._tables.get(table)
        if index is None:
            _check_names(table)
            index = self._tables[table] = len(self._tables)
            self._seen[id(table)] = (table, index)
            text.append(lines.table_lines(index, table))
        return index


def _check_names(table: LeafTable) -> None:
    names = [key.name for key in table.keys]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"leaf {twice!r} is there twice; names are unique within a group")
    if any("\n" in name for name in names):
        raise ValueError("a leaf's name has a line break; names are one line")


def _create(path: Path) -> int:
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
    except FileExistsError:
        raise TrajectoryError(f"{path} exists already; record into an empty directory") from None
