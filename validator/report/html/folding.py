"""Folds ranks and moments, so that a map of a thousand of each has a size that a person can take in. Pure.

Folding hides nothing: ranks that look alike throughout become one row, moments that look alike become one column, and
only where that is not enough are neighbours joined, each joint cell showing the worst that it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

#: Rows and columns that a map has at most.
MOST_RANKS = 24
MOST_COLUMNS = 64


def fold_ranks(found: NDArray[np.uint8], most: int = MOST_RANKS) -> list[list[int]]:
    """Positions of ranks by row, for ``found[ranks, columns, groups]``.

    Up to ``most`` ranks stand alone. More are put together where they look alike; of more than ``most`` such kinds,
    neighbours are.
    """
    ranks = len(found)
    if ranks <= most:
        return [[position] for position in range(ranks)]
    kinds: dict[bytes, list[int]] = {}
    for position in range(ranks):
        kinds.setdefault(found[position].tobytes(), []).append(position)
    if len(kinds) <= most:
        return list(kinds.values())
    edges = np.linspace(0, ranks, most + 1).round().astype(int).tolist()
    return [list(range(begin, end)) for begin, end in pairwise(edges)]


def fold_columns(
    found: NDArray[np.uint8], alone: Sequence[bool], joints: Sequence[int] = (), most: int = MOST_COLUMNS
) -> list[range]:
    """Ranges of columns that become one, for ``found[ranks, columns, groups]``.

    ``alone`` marks columns that never join others (restores), ``joints`` where a new launch begins. Up to ``most``
    columns stand alone. Of more, those that look alike are put together, and the longest such ranges divided again
    until there are ``most``; where even that is too many, ranges of equal length are, with the first column that
    differs at the begin of one.
    """
    columns = found.shape[1]
    if columns <= most:
        return [range(column, column + 1) for column in range(columns)]
    fixed = {0, *joints}
    for column, lonely in enumerate(alone):
        if lonely:
            fixed |= {column, column + 1}
    changes = (found[:, 1:] != found[:, :-1]).any(axis=(0, 2)).nonzero()[0] + 1
    edges = fixed | set(changes.tolist())
    if len(edges) > most:
        edges = fixed | set(changes[:1].tolist())
    return _divided(sorted(edges - {columns}), columns, most)


def folded(found: NDArray[np.uint8], rows: Sequence[Sequence[int]], columns: Sequence[range]) -> NDArray[np.uint8]:
    """``[rows, columns, groups]``: the greatest state that each joint cell holds."""
    by_rank = np.stack([found[list(row)].max(axis=0) for row in rows])
    return np.stack([by_rank[:, column.start : column.stop].max(axis=1) for column in columns], axis=1)


def ranges_in_words(numbers: Sequence[int]) -> str:
    """``0–511, 513``: ascending numbers with neighbours joined; ten pieces at most."""
    pieces: list[list[int]] = []
    for number in numbers:
        if pieces and pieces[-1][1] == number - 1:
            pieces[-1][1] = number
        else:
            pieces.append([number, number])
    words = [f"{first}" if first == last else f"{first}–{last}" for first, last in pieces]
    more = f" and {len(words) - 10} more ranges" if len(words) > 10 else ""
    return ", ".join(words[:10]) + more


def _divided(edges: list[int], end: int, most: int) -> list[range]:
    """Ranges between edges, the longest divided in two until there are ``most``."""
    ranges = [range(begin, stop) for begin, stop in pairwise([*edges, end])]
    while len(ranges) < most:
        longest = max(range(len(ranges)), key=lambda at: len(ranges[at]))
        chosen = ranges[longest]
        if len(chosen) < 2:
            break
        middle = chosen.start + (len(chosen) + 1) // 2
        ranges[longest : longest + 1] = [range(chosen.start, middle), range(middle, chosen.stop)]
    return ranges
