"""The map's data: state groups × moments × ranks, folded, with the tensors behind what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from validator.comparison import MomentPair
from validator.report.html.folding import fold_columns, fold_ranks, folded, ranges_in_words
from validator.report.html.states import State, Strip, states
from validator.report.html.tensors import MOST_IN_CELL, Cell, Place, Shelf
from validator.report.model import WaivedFinding
from validator.trajectory.groups import Group, Moment, Phase

_GROUPS = tuple(Group)

#: Leaves that a cell lists at least, as long as there is room.
_LEAST = 3


@dataclass(frozen=True, slots=True)
class Column:
    """One column: ``count`` moments of one launch, from ``first`` to ``last``, as the observed side names them."""

    strip: str
    first: str
    last: str
    count: int


@dataclass(frozen=True, slots=True)
class Row:
    """Ranks that share a row: their numbers in words, and how many they are."""

    ranks: str
    count: int


@dataclass(frozen=True, slots=True)
class Map:
    """``states[row, column, group]`` holds the worst of each joint cell; ``groups`` are those that occur at all.

    ``cells`` has what is behind a cell that differs, by (row, column, group), as far as it was opened.
    """

    identity: str
    title: str
    expected: str
    observed: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    groups: tuple[Group, ...]
    states: NDArray[np.uint8]
    cells: dict[tuple[int, int, int], Cell]
    moments: int
    ranks: int

    @property
    def folded(self) -> bool:
        """Whether a row or column stands for several."""
        return len(self.columns) < self.moments or len(self.rows) < self.ranks

    def worst(self, group: int) -> NDArray[np.uint8]:
        """``[columns]``: the worst over all ranks, of the group at an index of ``groups``."""
        whole: NDArray[np.uint8] = self.states[:, :, group].max(axis=0)
        return whole

    def find(self, moment: str, group: str) -> tuple[int, int] | None:
        """(group, column) of the first cell of a state group that differs at a moment, as the observed side names it.

        The same moment may be there several times, once a launch; a moment of a longer column is found in it.
        """
        try:
            at, wanted = self.groups.index(Group(group)), Moment.parse(moment)
        except ValueError:  # not in this map, or no moment at all
            return None
        for column, each in enumerate(self.columns):
            first, last = Moment.parse(each.first), Moment.parse(each.last)
            inside = first.phase is wanted.phase and first.step <= wanted.step <= last.step
            if inside and self.states[:, column, at].max() == State.DIFFERENT:
                return at, column
        return None

    @property
    def start(self) -> tuple[int, int]:
        """(group, column) of the first cell that differs, in the order of time; the very first where none does."""
        columns, groups = (self.states.max(axis=0) == State.DIFFERENT).nonzero()
        return (int(groups[0]), int(columns[0])) if len(columns) else (0, 0)

    def count(self, state: State) -> int:
        """Cells of one group and column, over all ranks, that show a state."""
        return int((self.states.max(axis=0) == state).sum())


def draw_map(
    identity: str,
    title: str,
    expected: str,
    strips: Sequence[Strip],
    shelf: Shelf,
    still: NDArray[np.bool_] | None = None,
    waived: Sequence[WaivedFinding] = (),
) -> Map | None:
    """The map of one or more launches, one after the other, against what they are compared with.

    ``shelf`` takes in the tensors. ``None`` where there is nothing to draw. The strips' ``refusal`` is empty.
    """
    strips = [strip for strip in strips if strip.pairs and strip.expected.ranks]
    if not strips or any(strip.expected.ranks != strips[0].expected.ranks for strip in strips):
        return None
    whole = np.concatenate([states(strip, still, waived) for strip in strips], axis=1)
    flat = [(strip, pair) for strip in strips for pair in strip.pairs]
    joints = np.cumsum([0, *(len(strip.pairs) for strip in strips)])[:-1].tolist()
    alone = [pair.observed.phase is not Phase.STEP for _, pair in flat]
    columns = fold_columns(whole, alone, joints)
    rows = fold_ranks(whole)
    held = [index for index in range(len(_GROUPS)) if whole[:, :, index].any()]
    ranks = strips[0].expected.ranks
    worst = folded(whole, rows, columns)[:, :, held]
    cells = {}
    for (row, column, group), most in _in_order(worst, shelf.room):
        place = _exemplar(whole, rows[row], columns[column], held[group], int(worst[row, column, group]))
        cell = shelf.open(_place(flat[place[1]], ranks[place[0]], _GROUPS[held[group]]), most)
        if cell is not None:
            cells[row, column, group] = cell
    return Map(
        identity=identity,
        title=title,
        expected=expected,
        observed=", ".join(strip.name for strip in strips),
        columns=tuple(_column(flat, column) for column in columns),
        rows=tuple(Row(ranges_in_words([ranks[position] for position in row]), len(row)) for row in rows),
        groups=tuple(_GROUPS[index] for index in held),
        states=worst,
        cells=cells,
        moments=len(flat),
        ranks=len(ranks),
    )


def _in_order(worst: NDArray[np.uint8], room: int) -> Iterator[tuple[tuple[int, int, int], int]]:
    """Cells that differ or are waived, and how many leaves each may list of those that there is ``room`` for.

    First one of each group and column, in the order of time: they share most of the room. Then the others.
    """
    chosen = (worst == State.DIFFERENT) | (worst == State.WAIVED)
    first, later = [], []
    for column in range(worst.shape[1]):
        for group in range(worst.shape[2]):
            rows = chosen[:, column, group].nonzero()[0].tolist()
            first += [(row, column, group) for row in rows[:1]]
            later += [(row, column, group) for row in rows[1:]]
    share = room * 2 // 3 // max(1, len(first))
    yield from ((cell, max(_LEAST, min(share, MOST_IN_CELL))) for cell in first)
    share = room // 3 // max(1, len(later))
    yield from ((cell, max(_LEAST, min(share, MOST_IN_CELL))) for cell in later)


def _exemplar(whole: NDArray[np.uint8], row: Sequence[int], column: range, group: int, state: int) -> tuple[int, int]:
    """The first (rank position, column) of a joint cell that is in the state it shows: by moment, then rank."""
    block = whole[list(row), column.start : column.stop, group] == state
    at, position = (int(each[0]) for each in block.T.nonzero())
    return row[position], column.start + at


def _place(at: tuple[Strip, MomentPair], rank: int, group: Group) -> Place:
    strip, pair = at
    return Place(strip.expected, strip.observed, pair, rank, group)


def _column(flat: Sequence[tuple[Strip, MomentPair]], column: range) -> Column:
    strip, first = flat[column.start]
    _, last = flat[column.stop - 1]
    return Column(strip.name, str(first.observed), str(last.observed), len(column))
