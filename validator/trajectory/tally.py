"""Counts differing leaves by moment and group, streaming: memory does not grow with the leaves.

Ranks are walked one after the other and moments within them, which is the order of the files. Where both sides have the
same leaves, many moments of a rank are one comparison of two blocks of bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from validator.errors import TrajectoryError
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import DIGEST_BYTES
from validator.trajectory.reader import Trajectory
from validator.trajectory.tree import ABSENT, Rows

_GROUPS = tuple(Group)

#: How much of a leaves file is compared at once: fits a core's second-level cache.
_BLOCK_BYTES = 1 << 18

#: By group: (differing leaves, leaves), for what cannot be compared as blocks; only groups that differ.
type CountGroups = Callable[[int, int], dict[Group, tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts over ranks, each ``[pairs, groups]`` int64 in the order of ``Group``.

    ``leaves`` counts the leaves of the group on the ranks where it differs.
    """

    differing: NDArray[np.int64]
    leaves: NDArray[np.int64]
    ranks: NDArray[np.int64]

    @classmethod
    def empty(cls, pairs: int) -> Tally:
        """No difference in any of ``pairs`` pairs of moments."""
        shape = (pairs, len(_GROUPS))
        return cls(np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.zeros(shape, np.int64))

    def add(self, pair: int, group: Group, differing: int, leaves: int) -> None:
        """One rank whose group differs."""
        column = _GROUPS.index(group)
        self.differing[pair, column] += differing
        self.leaves[pair, column] += leaves
        self.ranks[pair, column] += 1


class BlockCounter:
    """Counts the differing leaves of two trajectories into ``tally``.

    ``moments`` are the pairs of moments that the tally's rows stand for; ``count_groups(pair, rank)`` counts where the
    two sides hold different leaves.
    """

    def __init__(
        self,
        expected: Trajectory,
        observed: Trajectory,
        moments: Sequence[tuple[Moment, Moment]],
        tally: Tally,
        count_groups: CountGroups,
    ) -> None:
        self._sides = (expected, observed)
        self._positions = [
            np.array([side.moment_position(pair[index]) for pair in moments], np.int64)
            for index, side in enumerate(self._sides)
        ]
        self._tally = tally
        self._count_groups = count_groups
        numbers: dict[bytes, int] = {}
        # Tables are numbered per trajectory; these give equal tables of both sides one number.
        self._numbers = [
            np.array([numbers.setdefault(row["digest"].tobytes(), len(numbers)) for row in side.tree.table_rows()])
            for side in self._sides
        ]
        self._same_groups = expected.group_names == observed.group_names

    def count_rank(self, rank: int, pairs: NDArray[np.int64], whole: NDArray[np.bool_]) -> None:
        """Count one rank at the given pairs; ``whole[pair]`` says that all groups of the pair are compared."""
        alike = np.zeros(len(pairs), np.bool_)
        if self._same_groups:
            rows = [
                side.tree.group_rows(side.rank_position(rank))[positions[pairs]]
                for side, positions in zip(self._sides, self._positions, strict=True)
            ]
            tables = [self._table_numbers(index, side_rows) for index, side_rows in enumerate(rows)]
            alike = (tables[0] == tables[1]).all(axis=1) & whole[pairs]
            self._count_blocks(rank, pairs[alike], rows[0][alike], rows[1][alike])
        for pair in pairs[~alike].tolist():
            for group, (differing, leaves) in self._count_groups(pair, rank).items():
                self._tally.add(pair, group, differing, leaves)

    def _table_numbers(self, side: int, rows: Rows) -> NDArray[np.int64]:
        absent = rows["table"] == ABSENT
        known = np.where(absent, 0, rows["table"])
        if not len(self._numbers[side]):
            return np.full(rows.shape, -1)
        return np.where(absent, -1, self._numbers[side][known])

    def _count_blocks(self, rank: int, pairs: NDArray[np.int64], expected: Rows, observed: Rows) -> None:
        columns = np.array([_GROUPS.index(name) for name in self._sides[0].group_names])
        counts = expected["leaves"].astype(np.int64)
        totals = counts.sum(axis=1)
        starts = [
            side["leaves_at"].min(axis=1, where=counts > 0, initial=2**63).astype(np.int64)
            for side in (expected, observed)
        ]
        with self._sides[0].open_leaves(rank) as left, self._sides[1].open_leaves(rank) as right:
            for begin, end in _runs(counts, totals, starts):
                total = int(totals[begin])
                shape = (end - begin, total, 2)
                unequal = _read(left, shape, starts[0][begin]) != _read(right, shape, starts[1][begin])
                held = counts[begin].nonzero()[0]
                sizes = counts[begin][held]
                bounds = sizes.cumsum() - sizes
                differing = np.add.reduceat(unequal[..., 0] | unequal[..., 1], bounds, axis=1, dtype=np.int64)
                at = np.ix_(pairs[begin:end], columns[held])
                self._tally.differing[at] += differing
                self._tally.leaves[at] += sizes * (differing > 0)
                self._tally.ranks[at] += differing > 0


def _runs(
    counts: NDArray[np.int64], totals: NDArray[np.int64], starts: list[NDArray[np.int64]]
) -> Iterator[tuple[int, int]]:
    """Ranges of rows that have the same leaves and follow one another in both files; rows without leaves are not in."""
    joined = (counts[1:] == counts[:-1]).all(axis=1)
    for side in starts:
        joined &= side[1:] == side[:-1] + totals[:-1] * DIGEST_BYTES
    breaks = [0, *((~joined).nonzero()[0] + 1).tolist(), len(counts)]
    for begin, end in pairwise(breaks):
        if begin < end and totals[begin]:
            rows = max(1, _BLOCK_BYTES // (int(totals[begin]) * DIGEST_BYTES))
            yield from ((at, min(at + rows, end)) for at in range(begin, end, rows))


def _read(file: BinaryIO, shape: tuple[int, int, int], at: int) -> NDArray[np.uint64]:
    """Digests as two words each, ``[moments, leaves, 2]``."""
    size = shape[0] * shape[1] * DIGEST_BYTES
    data = os.pread(file.fileno(), size, at)
    if len(data) != size:
        raise TrajectoryError(f"{file.name} is truncated: it ends before byte {at + size}")
    return np.frombuffer(data, np.uint64).reshape(shape)
