"""What is equal and what is not, at every rank, moment and state group: the values that the map colours.

Only the trees' digests are read, and leaves where a waiver may explain a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from validator.comparison import MomentPair
from validator.report.model import WaivedFinding
from validator.trajectory.differences import Kind, group_differences
from validator.trajectory.groups import Group, Moment
from validator.trajectory.reader import Trajectory
from validator.trajectory.tree import ABSENT, Rows

#: Differing places that are opened to see whether a waiver explains them; the rest count as different.
MOST_OPENED = 20_000

_GROUPS = tuple(Group)


class State(IntEnum):
    """How one state group of one rank at one moment stands. Of several folded into one, the greatest shows."""

    ABSENT = 0  # neither side has it, or it is not compared there
    UNEXERCISED = 1  # equal, but it never changed during the run: that proves nothing
    EQUAL = 2
    WAIVED = 3
    DIFFERENT = 4


@dataclass(frozen=True, slots=True)
class Strip:
    """Two trajectories side by side, moment by moment; ``name`` is the observed launch's."""

    name: str
    expected: Trajectory
    observed: Trajectory
    pairs: tuple[MomentPair, ...]

    @property
    def refusal(self) -> str:
        """A sentence where the two cannot be laid side by side, else empty."""
        if self.expected.algorithm != self.observed.algorithm:
            return f"{self.name}: the digests are of different algorithms."
        if self.expected.ranks != self.observed.ranks:
            sides = len(self.expected.ranks), len(self.observed.ranks)
            return f"{self.name}: the trajectories hold different ranks ({sides[0]} and {sides[1]} of them)."
        return ""


def every_moment(expected: Trajectory, observed: Trajectory) -> tuple[MomentPair, ...]:
    """Every moment that either side has, with itself."""
    moments = sorted({*expected.moments, *observed.moments}, key=lambda moment: moment.order)
    return tuple(MomentPair(moment, moment) for moment in moments)


def unexercised(trajectory: Trajectory) -> NDArray[np.bool_]:
    """``[ranks, groups]``: groups, in the order of ``Group``, that are the same at every moment that has them."""
    side = _Side(trajectory, trajectory.moments)
    still = np.zeros((len(trajectory.ranks), len(_GROUPS)), np.bool_)
    for position in range(len(trajectory.ranks)):
        digests, held = side.digests(position)
        first = digests[held.argmax(axis=0), np.arange(len(_GROUPS))]
        still[position] = ((digests == first).all(axis=2) | ~held).all(axis=0) & held.any(axis=0)
    return still


def states(
    strip: Strip, still: NDArray[np.bool_] | None = None, waived: Sequence[WaivedFinding] = ()
) -> NDArray[np.uint8]:
    """``[ranks, pairs, groups]`` of :class:`State`, groups in the order of ``Group``. ``strip.refusal`` is empty.

    ``still[ranks, groups]`` says which groups are not exercised; ``waived`` which wrong digests are known.
    """
    found = np.zeros((len(strip.expected.ranks), len(strip.pairs), len(_GROUPS)), np.uint8)
    sides = [
        _Side(strip.expected, [pair.expected for pair in strip.pairs]),
        _Side(strip.observed, [pair.observed for pair in strip.pairs]),
    ]
    compared = np.array([[pair.covers(group) for group in _GROUPS] for pair in strip.pairs], np.bool_)
    for position in range(len(strip.expected.ranks)):
        (left, in_left), (right, in_right) = (side.digests(position) for side in sides)
        different = (in_left != in_right) | (in_left & in_right & (left != right).any(axis=2))
        equal = in_left & in_right & ~different
        found[position][equal] = State.EQUAL
        if still is not None:
            found[position][equal & still[position]] = State.UNEXERCISED
        found[position][different & compared] = State.DIFFERENT
        found[position][~compared] = State.ABSENT
    _excuse(strip, found, waived)
    return found


class _Side:
    """One trajectory's digests at the moments asked for, by group in the order of ``Group``."""

    def __init__(self, trajectory: Trajectory, moments: Sequence[Moment]) -> None:
        self._trajectory = trajectory
        known = {moment: position for position, moment in enumerate(trajectory.moments)}
        self._there = np.array([moment in known for moment in moments], np.bool_)
        self._at = np.array([known.get(moment, 0) for moment in moments], np.int64)
        self._columns = [_GROUPS.index(group) for group in trajectory.group_names]

    def digests(self, position: int) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
        """Digests ``[moments, groups, 2]`` of the rank at a position, and where there is one at all."""
        shape = (len(self._at), len(_GROUPS))
        digests = np.zeros((*shape, 2), np.uint64)
        held = np.zeros(shape, np.bool_)
        if self._columns and self._trajectory.moments:
            rows: Rows = self._trajectory.tree.group_rows(position)[self._at]
            digests[:, self._columns] = rows["digest"]
            held[:, self._columns] = (rows["table"] != ABSENT) & self._there[:, None]
        return digests, held


def _excuse(strip: Strip, found: NDArray[np.uint8], waived: Sequence[WaivedFinding]) -> None:
    """Turn ``DIFFERENT`` into ``WAIVED`` where every leaf that differs has the wrong digest that a waiver names."""
    known = {(finding.leaf, finding.observed, rank) for finding in waived for rank in finding.ranks}
    groups = {leaf.partition("/")[0] for leaf, _, _ in known}
    for position, column, index in _different(found, [_GROUPS.index(g) for g in _GROUPS if g in groups]):
        group, pair, rank = _GROUPS[index], strip.pairs[column], strip.expected.ranks[position]
        try:
            expected = strip.expected.leaves(rank, pair.expected, group)
            observed = strip.observed.leaves(rank, pair.observed, group)
        except KeyError:
            continue
        if all(
            each.kind is Kind.LEAF
            and each.observed is not None
            and (f"{group}/{each.observed.name}", each.observed_digest.hex(), rank) in known
            for each in group_differences(expected, observed)
        ):
            found[position, column, index] = State.WAIVED


def _different(found: NDArray[np.uint8], groups: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Places (rank, pair, group) that differ in some groups: the first of them, in the order of time."""
    chosen = found[:, :, list(groups)] == State.DIFFERENT
    columns, positions, picked = chosen.transpose(1, 0, 2).nonzero()
    places = zip(positions[:MOST_OPENED].tolist(), columns.tolist(), picked.tolist(), strict=False)
    return ((position, column, groups[pick]) for position, column, pick in places)
