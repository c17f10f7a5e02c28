"""Finds a smallest set of changes that flips an outcome, in few tests. Pure.

Delta debugging (Zeller and Hildebrandt 2002, "Simplifying and isolating failure-inducing input", IEEE TSE 28(2)),
with a binary search over prefixes before it: that finds k culprits among n changes in about k·(log2 n + 1) tests where
every test has an answer, and delta debugging then makes sure that no single change can be left out, also where some
tests had none.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from enum import StrEnum


class Answer(StrEnum):
    """What a test of a set of changes said."""

    SAME = "same"  # as without any change
    DIFFERS = "differs"
    UNRESOLVED = "unresolved"  # it could not be launched, which says nothing about the bits


#: Tests a set of changes; also told about how many tests are left, itself included.
type Test[T] = Callable[[frozenset[T], int], Answer]


def smallest_flip[T](items: Sequence[T], test: Test[T]) -> frozenset[T]:
    """A set of ``items`` that differs, and from which no single item can be left out so that it still does.

    ``items`` are distinct. All of them together are known to differ, and none of them to be the same: neither is tested
    again, nor any set twice. For one culprit among n items there are at most ⌈log2 n⌉ + 1 tests.
    """
    known: dict[frozenset[T], Answer] = {frozenset(): Answer.SAME, frozenset(items): Answer.DIFFERS}

    def differs(chosen: Sequence[T], left: int) -> bool:
        subset = frozenset(chosen)
        if subset not in known:
            known[subset] = test(subset, max(left, 1))
        return known[subset] is Answer.DIFFERS

    return frozenset(_delta_debug(_culprits(items, differs), differs))


def expected_tests(changes: int) -> int:
    """About how many tests one culprit among so many changes takes."""
    return math.ceil(math.log2(changes)) + 1 if changes > 1 else 0


def _culprits[T](items: Sequence[T], differs: Callable[[Sequence[T], int], bool]) -> list[T]:
    """Items found one by one as the last of a shortest prefix that differs, together with those found before."""
    found: list[T] = []
    pool = list(items)
    while not differs(found, 1):
        without, within = 0, len(pool)  # found and the first `within` of the pool differ; with `without` they do not
        while within - without > 1:
            middle = (without + within) // 2
            if differs([*found, *pool[:middle]], expected_tests(within - without)):
                within = middle
            else:
                without = middle
        found.append(pool[within - 1])
        pool = pool[: within - 1]
    return found


def _delta_debug[T](items: list[T], differs: Callable[[Sequence[T], int], bool]) -> list[T]:
    pieces = 2
    while len(items) > 1:
        chunks = _split(items, pieces)
        smaller = next((chunk for chunk in chunks if differs(chunk, len(items))), None)
        if smaller is not None:
            items, pieces = smaller, 2
            continue
        rests = [[item for item in items if item not in chunk] for chunk in chunks]
        smaller = next((rest for rest in rests if differs(rest, len(items))), None)
        if smaller is not None:
            items, pieces = smaller, max(pieces - 1, 2)
            continue
        if pieces >= len(items):
            break
        pieces = min(2 * pieces, len(items))
    return items


def _split[T](items: list[T], pieces: int) -> list[list[T]]:
    """``items`` in ``pieces`` parts of nearly equal length, none of them empty."""
    bounds = [len(items) * index // pieces for index in range(pieces + 1)]
    return [items[low:high] for low, high in itertools.pairwise(bounds)]
