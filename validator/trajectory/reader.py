"""A sealed trajectory, opened for reading. Opening reads the summary; everything else is read when asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Self

from validator.errors import TrajectoryError
from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import ENVIRONMENT, SUMMARY, TREE, leaves_name, present_ranks, text_name
from validator.trajectory.leaves import DIGEST_BYTES, LeafTable
from validator.trajectory.lines import parse_key
from validator.trajectory.metrics import Metric, parse_metric
from validator.trajectory.record import GroupRecord
from validator.trajectory.summary import file_fact, read_summary
from validator.trajectory.tree import ABSENT, Rows, Tree


class Trajectory:
    """What one launch left behind. Use ``Trajectory.open`` or ``seal``.

    Methods that take a rank or a moment raise ``KeyError`` for one that the trajectory does not have.
    """

    def __init__(self, directory: Path, summary: Mapping[str, Any]) -> None:
        self.directory = directory
        self.header: Mapping[str, Any] = summary["header"]
        self.algorithm: str = summary["algorithm"]
        self.status: str = summary["status"]
        self.world_size: int = summary["world_size"]
        self.ranks: tuple[int, ...] = tuple(summary["ranks"])
        self.moments: tuple[Moment, ...] = tuple(map(Moment.parse, summary["moments"]))
        self.group_names: tuple[Group, ...] = tuple(map(Group, summary["groups"]))
        self.root: bytes = bytes.fromhex(summary["root"])
        self.files: tuple[str, ...] = (SUMMARY, *summary["files"])
        self._moment_facts: Mapping[str, Any] = summary["moments"]
        self._unended = frozenset(summary["unended"])
        self._rank_index = {rank: index for index, rank in enumerate(self.ranks)}
        self._moment_index = {moment: index for index, moment in enumerate(self.moments)}
        self.tree = Tree(directory / TREE, len(self.ranks), len(self.moments), len(self.group_names), summary["tables"])
        self.table = lru_cache(maxsize=256)(self._read_table)

    @classmethod
    def open(cls, directory: Path, verify: bool = True) -> Self:
        """Open a sealed trajectory.

        The summary's own digest and the size of every file are always checked; ``verify`` checks the SHA-256 of every
        file too, which reads all of them. ``TrajectoryError`` names a file that is truncated, edited, foreign or of
        another version.
        """
        summary = read_summary(directory)
        files = summary["files"]
        for rank in present_ranks(directory):
            if text_name(rank) not in files:
                raise TrajectoryError(f"{directory / text_name(rank)} is foreign: {SUMMARY} does not list it")
        for name, fact in files.items():
            _check_size(directory / name, fact["bytes"])
        if verify:
            # Hashing releases the interpreter's lock, so threads share the work.
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                found = pool.map(lambda name: file_fact(directory / name), files)
                for (name, fact), now in zip(files.items(), found, strict=True):
                    if now != fact:
                        raise TrajectoryError(f"{directory / name} was edited: its SHA-256 is not the one in {SUMMARY}")
        return cls(directory, summary)

    @property
    def complete(self) -> bool:
        """Whether every rank came to its end with the same moments."""
        return self.status == "complete"

    @cached_property
    def environment(self) -> Mapping[str, Any]:
        """The environment that the trajectory was recorded in, as it was handed to ``seal``."""
        environment: Mapping[str, Any] = json.loads((self.directory / ENVIRONMENT).read_bytes())
        return environment

    @cached_property
    def endings(self) -> Mapping[int, Mapping[str, Any]]:
        """End record of each rank that came to its end."""
        return {rank: self._read_ending(rank) for rank in self.ranks if rank not in self._unended}

    def rank_digest(self, rank: int, moment: Moment) -> bytes:
        """Digest of all that the rank holds at the moment: 16 bytes."""
        digest: bytes = self._rank_row(rank, moment)["digest"].tobytes()
        return digest

    def moment_digest(self, moment: Moment) -> bytes:
        """Digest over all ranks at the moment: 16 bytes."""
        return bytes.fromhex(self._moment_facts[str(moment)]["digest"])

    def moment_leaves(self, moment: Moment) -> int:
        """Number of leaves at the moment, over all ranks."""
        return int(self._moment_facts[str(moment)]["leaves"])

    def groups(self, rank: int, moment: Moment) -> Mapping[Group, bytes]:
        """Digest of each group that the rank has at the moment."""
        rows = self.group_rows(rank, moment)
        return {
            group: row["digest"].tobytes()
            for group, row in zip(self.group_names, rows, strict=True)
            if row["table"] != ABSENT
        }

    def leaves(self, rank: int, moment: Moment, group: Group) -> GroupRecord:
        """Leaf table and digests of one group; ``KeyError`` where the rank does not have the group then."""
        row = self.group_rows(rank, moment)[self.group_names.index(group)] if group in self.group_names else None
        if row is None or row["table"] == ABSENT:
            raise KeyError(group)
        with self.open_leaves(rank) as file:
            digests = os.pread(file.fileno(), int(row["leaves"]) * DIGEST_BYTES, int(row["leaves_at"]))
        return GroupRecord(self.table(int(row["table"])), digests)

    def metrics(self, rank: int, moment: Moment) -> Mapping[str, Metric]:
        """The rank's metrics at the moment, by name, with their exact bits."""
        row = self._rank_row(rank, moment)
        with (self.directory / text_name(rank)).open("rb") as file:
            text = os.pread(file.fileno(), int(row["text_bytes"][0]), int(row["text_at"][0]))
        lines = (line for line in text.split(b"\n") if line.startswith(b'{"metric"'))
        try:
            return dict(parse_metric(json.loads(line)) for line in lines)
        except (ValueError, TypeError, KeyError, RecursionError):
            path = self.directory / text_name(rank)
            raise TrajectoryError(f"{path} was edited: a metric at {moment} is none") from None

    def group_rows(self, rank: int, moment: Moment) -> Rows:
        """The tree's rows of one rank at one moment, in the order of ``group_names``."""
        return self.tree.group_rows_at(self.rank_position(rank), self.moment_position(moment))

    def rank_position(self, rank: int) -> int:
        """Position of the rank in the tree."""
        return self._rank_index[rank]

    def moment_position(self, moment: Moment) -> int:
        """Position of the moment in the tree."""
        return self._moment_index[moment]

    def open_leaves(self, rank: int) -> BinaryIO:
        """The rank's leaves file, for reading by place."""
        return (self.directory / leaves_name(rank)).open("rb")

    def _rank_row(self, rank: int, moment: Moment) -> Rows:
        return self.tree.rank_row(self.rank_position(rank), self.moment_position(moment))

    def _read_table(self, number: int) -> LeafTable:
        row = self._table_rows[number]
        with (self.directory / text_name(int(row["rank"]))).open("rb") as file:
            file.seek(int(row["text_at"]))
            file.readline()
            return LeafTable(tuple(parse_key(json.loads(file.readline())) for _ in range(int(row["leaves"]))))

    @cached_property
    def _table_rows(self) -> Rows:
        return self.tree.table_rows()

    def _read_ending(self, rank: int) -> Mapping[str, Any]:
        """The last line of the rank's text, looked for backwards in growing pieces."""
        with (self.directory / text_name(rank)).open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            piece = 4096
            while True:
                start = max(0, size - piece)
                *lines, _ = os.pread(file.fileno(), size - start, start).split(b"\n")
                if len(lines) > 1 or start == 0:
                    ending: Mapping[str, Any] = json.loads(lines[-1])["end"]
                    return ending
                piece *= 4


def _check_size(path: Path, expected: int) -> None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise TrajectoryError(f"{path} is missing: the trajectory is truncated") from None
    if size != expected:
        how = "is truncated" if size < expected else "was edited"
        raise TrajectoryError(f"{path} {how}: {size} bytes where {SUMMARY} lists {expected}")
