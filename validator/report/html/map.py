"""The map's data: state groups × moments × ranks, folded, with the tensors behind what differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from validator.comparison import MomentPair
from validator.report.html.folding import fold_columns, fold_ranks, folded, ranges_in_words
from validator.report.html.states import State, Strip, states
from validator.report.html.tensors import Cell, Place, Shelf
from validator.report.model import WaivedFinding
from validator.trajectory.groups import Group, Phase

_GROUPS = tuple(Group)


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
    for row, column, group in _in_order(worst):
        place = _exemplar(whole, rows[row], columns[column], held[group], int(worst[row, column, group]))
        cell = shelf.open(_place(flat[place[1]], ranks[place[0]], _GROUPS[held[group]]))
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


def _in_order(worst: NDArray[np.uint8]) -> Iterator[tuple[int, int, int]]:
    """Cells that differ or are waived: first one of each group and column, in the order of time, then the others."""
    chosen = (worst == State.DIFFERENT) | (worst == State.WAIVED)
    later = []
    for column in range(worst.shape[1]):
        for group in range(worst.shape[2]):
            rows = chosen[:, column, group].nonzero()[0].tolist()
            if rows:
                yield rows[0], column, group
                later += [(row, column, group) for row in rows[1:]]
    yield from later


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
