"""Seals what a launch left behind: verifies every rank, indexes it, and writes the summary last."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import xxhash

from validator.errors import TrajectoryError
from validator.trajectory import lines
from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import ENVIRONMENT, SUMMARY, TREE, leaves_name, present_ranks, text_name
from validator.trajectory.leaves import Algorithm, LeafTable, fold_named, fold_ranks
from validator.trajectory.reader import Trajectory
from validator.trajectory.summary import file_fact, write_atomically, write_summary
from validator.trajectory.tree import ABSENT, GROUP_ROW, RANK_ROW, ROW_BYTES, TABLE_ROW, Rows, digest_words
from validator.trajectory.verify import VerifiedRank, verify_rank

_GROUPS = tuple(Group)


def seal(
    directory: Path, header: Mapping[str, Any], environment: Mapping[str, Any], *, most_moments: int | None = None
) -> Trajectory:
    """Turn the files of a launch into a trajectory, and open it.

    ``header`` (pipeline, hardware class, computation, stamps, …) and ``environment`` are carried as they are; both must
    be JSON. The trajectory is ``incomplete`` where a rank is absent, has no end record, or has other moments than the
    rest: then the moments that all ranks finished count. ``TrajectoryError`` where a file is not what a writer wrote,
    where a rank has more than ``most_moments``, where the directory is sealed already, or where the disk is full; the
    directory stays unsealed then.
    """
    if (directory / SUMMARY).exists():
        raise TrajectoryError(f"{directory} is sealed already; seal each launch's own directory once")
    try:
        with tempfile.TemporaryFile(dir=directory) as spool:
            build = _Build(spool, most_moments)
            for rank in present_ranks(directory):
                build.add(verify_rank(directory, rank))
            _finish(directory, build, header, environment)
    except OSError as problem:
        raise TrajectoryError(
            f"{directory} cannot be sealed: {problem.strerror}; free its disk and seal it again"
        ) from problem
    return Trajectory.open(directory, verify=False)


class _Build:
    """Gathers ranks one at a time; rows go to a spool, so that memory does not grow with ranks × moments × groups."""

    def __init__(self, spool: IO[bytes], most_moments: int | None) -> None:
        self._spool = spool
        self._most_moments = most_moments
        self.ranks: list[int] = []
        self.moments: list[tuple[Moment, ...]] = []
        self.ended: list[bool] = []
        self.world_size: int | None = None
        self.algorithm: Algorithm | None = None
        self.leaf_counts: dict[Moment, int] = {}
        self.groups: set[Group] = set()
        self._tables: dict[bytes, int] = {}
        self._table_digests: dict[LeafTable, bytes] = {}
        self.table_rows: list[tuple[tuple[int, int], int, int, int]] = []

    def add(self, rank: VerifiedRank) -> None:
        if rank.world_size is None:
            return  # died before its header was written: as if absent
        if self.world_size not in (None, rank.world_size):
            raise TrajectoryError(
                f"{text_name(rank.rank)} is foreign: it is of a launch of {rank.world_size} ranks, "
                f"the others are of one of {self.world_size}"
            )
        if self.algorithm not in (None, rank.algorithm):
            names = [algorithm.name for algorithm in (rank.algorithm, self.algorithm) if algorithm is not None]
            raise TrajectoryError(
                f"{text_name(rank.rank)} is foreign: its digests are {names[0]!r}, those of other ranks {names[-1]!r}"
            )
        if rank.rank >= rank.world_size:
            raise TrajectoryError(f"{text_name(rank.rank)} is foreign: its launch had {rank.world_size} ranks")
        if self._most_moments is not None and len(rank.moments) > self._most_moments:
            raise TrajectoryError(
                f"{text_name(rank.rank)} has {len(rank.moments)} moments, "
                f"and its launch at most {self._most_moments}; record the trajectory again"
            )
        self.world_size = rank.world_size
        self.algorithm = rank.algorithm
        self.ranks.append(rank.rank)
        self.ended.append(rank.end is not None)
        moments = tuple(each.moment for each in rank.moments)
        self.moments.append(self.moments[-1] if self.moments and self.moments[-1] == moments else moments)
        tables = [self._table(rank.rank, placed.table, placed.at) for placed in rank.tables]
        rank_rows = np.zeros(len(moments), RANK_ROW)
        group_rows = np.zeros((len(moments), len(_GROUPS)), GROUP_ROW)
        group_rows["table"] = ABSENT
        for row, moment in enumerate(rank.moments):
            rank_rows[row] = (digest_words(moment.digest), moment.at, moment.end - moment.at, 0)
            for group, entry in moment.groups.items():
                column = _GROUPS.index(group)
                group_rows[row, column] = (digest_words(entry.digest), entry.at, tables[entry.table], entry.leaves)
            self.groups.update(moment.groups)
            leaves = sum(entry.leaves for entry in moment.groups.values())
            self.leaf_counts[moment.moment] = self.leaf_counts.get(moment.moment, 0) + leaves
        self._spool.write(rank_rows.tobytes())
        self._spool.write(group_rows.tobytes())

    @property
    def complete(self) -> bool:
        every = len(self.ranks) == self.world_size
        return every and all(self.ended) and all(moments == self.moments[0] for moments in self.moments)

    @property
    def common_moments(self) -> tuple[Moment, ...]:
        """Moments that all ranks of the launch finished."""
        if len(self.ranks) != self.world_size:
            return ()
        shared = set(self.moments[0]).intersection(*self.moments[1:])
        return tuple(moment for moment in self.moments[0] if moment in shared)

    def write_tree(self, path: Path, moments: Sequence[Moment], groups: Sequence[Group]) -> Rows:
        """Write the tree and return its rank rows, ``[ranks, moments]``."""
        columns = [_GROUPS.index(group) for group in groups]
        rank_rows = np.zeros((len(self.ranks), len(moments)), RANK_ROW)
        self._spool.seek(0)
        with path.open("wb") as tree:
            tree.seek(rank_rows.nbytes)
            for index, own in enumerate(self.moments):
                chosen = _places(own, moments) if own != moments else slice(None)
                own_rank_rows = np.frombuffer(self._spool.read(len(own) * ROW_BYTES), RANK_ROW)
                data = self._spool.read(len(own) * len(_GROUPS) * ROW_BYTES)
                own_group_rows = np.frombuffer(data, GROUP_ROW).reshape(len(own), len(_GROUPS))
                rank_rows[index] = own_rank_rows[chosen]
                tree.write(own_group_rows[chosen][:, columns].tobytes())
            tree.write(np.array(self.table_rows, TABLE_ROW).tobytes())
            tree.seek(0)
            tree.write(rank_rows.tobytes())
        return rank_rows

    def _table(self, rank: int, table: LeafTable, at: int) -> int:
        """The trajectory-wide number of a table: equal tables of different ranks share one."""
        content = "".join(map(lines.key_line, table.keys)).encode()
        digest = xxhash.xxh3_128_digest(content)
        number = self._tables.get(digest)
        if number is None:
            number = self._tables[digest] = len(self._tables)
            self.table_rows.append((digest_words(digest), at, rank, len(table)))
        return number


def _places(own: Sequence[Moment], moments: Sequence[Moment]) -> list[int]:
    """Where each of ``moments`` stands in ``own``."""
    places = {moment: place for place, moment in enumerate(own)}
    return [places[moment] for moment in moments]


def _finish(directory: Path, build: _Build, header: Mapping[str, Any], environment: Mapping[str, Any]) -> None:
    if build.world_size is None or build.algorithm is None:
        raise TrajectoryError(f"{directory} holds no rank file with a header; no rank of the launch came to record")
    moments = build.common_moments
    groups = [group for group in _GROUPS if group in build.groups]
    temporary = directory / (TREE + ".tmp")
    rows = build.write_tree(temporary, moments, groups)
    temporary.replace(directory / TREE)
    text = json.dumps(environment, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(directory / ENVIRONMENT, text.encode())
    digests = {
        moment: fold_ranks({rank: rows["digest"][index, column].tobytes() for index, rank in enumerate(build.ranks)})
        for column, moment in enumerate(moments)
    }
    files = [ENVIRONMENT, TREE]
    for rank in build.ranks:
        files += [text_name(rank), leaves_name(rank)]
    write_summary(
        directory,
        {
            "status": "complete" if build.complete else "incomplete",
            "header": header,
            "root": fold_named((str(moment), digest) for moment, digest in digests.items()).hex(),
            "moments": {
                str(moment): {"digest": digest.hex(), "leaves": build.leaf_counts[moment]}
                for moment, digest in digests.items()
            },
            "groups": groups,
            "world_size": build.world_size,
            "ranks": build.ranks,
            "unended": [rank for rank, ended in zip(build.ranks, build.ended, strict=True) if not ended],
            "tables": len(build.table_rows),
            "files": {name: file_fact(directory / name) for name in files},
        },
        build.algorithm,
    )
