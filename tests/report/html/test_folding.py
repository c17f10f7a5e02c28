"""Folding hides nothing: what is put together looks alike, or shows the worst that it holds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from validator.report.html.folding import fold_columns, fold_ranks, folded, ranges_in_words
from validator.report.html.states import State


def _all(ranks: int, columns: int, groups: int = 2) -> np.ndarray:
    return np.full((ranks, columns, groups), State.EQUAL, np.uint8)


def test_few_ranks_and_columns_stand_alone() -> None:
    found = _all(3, 5)
    assert fold_ranks(found) == [[0], [1], [2]]
    assert fold_columns(found, [False] * 5) == [range(at, at + 1) for at in range(5)]


def test_the_one_rank_that_differs_has_a_row_of_its_own() -> None:
    found = _all(1024, 10)
    found[683, 7:, 1] = State.DIFFERENT
    rows = fold_ranks(found)
    assert [len(row) for row in rows] == [1023, 1]
    assert rows[1] == [683]


def test_ranks_of_too_many_kinds_are_joined_with_their_neighbours() -> None:
    found = _all(100, 8)
    for rank in range(100):
        for bit in range(7):
            found[rank, bit, 0] = State.DIFFERENT if rank >> bit & 1 else State.EQUAL
    rows = fold_ranks(found, most=10)
    assert [row[0] for row in rows] == list(range(0, 100, 10))
    assert [rank for row in rows for rank in row] == list(range(100))


def test_the_first_column_that_differs_begins_a_column() -> None:
    found = _all(4, 1000)
    found[2, 749:, 0] = State.DIFFERENT
    columns = fold_columns(found, [False] * 1000, most=64)
    assert len(columns) == 64
    assert 749 in {column.start for column in columns}
    assert [at for column in columns for at in column] == list(range(1000))
    assert max(map(len, columns)) <= 24


def test_a_restore_is_never_joined_with_steps() -> None:
    found = _all(2, 300)
    alone = [at in {0, 1, 150, 151} for at in range(300)]
    columns = fold_columns(found, alone, joints=[0, 150], most=64)
    assert all(range(at, at + 1) in columns for at in (0, 1, 150, 151))


@given(st.integers(1, 40), st.integers(1, 90), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_a_joint_cell_shows_the_worst_and_every_place_is_in_one(
    ranks: int, columns: int, seed: int, share: float
) -> None:
    source = np.random.default_rng(seed)
    found = np.where(source.random((ranks, columns, 3)) < share, State.DIFFERENT, State.EQUAL).astype(np.uint8)
    rows, ranges = fold_ranks(found, most=6), fold_columns(found, [False] * columns, most=12)
    whole = folded(found, rows, ranges)
    assert whole.shape == (len(rows), len(ranges), 3)
    assert sorted(rank for row in rows for rank in row) == list(range(ranks))
    assert [at for column in ranges for at in column] == list(range(columns))
    for at, row in enumerate(rows):
        for place, column in enumerate(ranges):
            block = found[row][:, column.start : column.stop]
            assert (whole[at, place] == block.max(axis=(0, 1))).all()


def test_ranges_are_written_as_a_person_would() -> None:
    assert ranges_in_words([3]) == "3"
    assert ranges_in_words([0, 1, 2, 5, 7, 8]) == "0–2, 5, 7–8"
    assert ranges_in_words(range(0, 40, 2)).endswith("16, 18 and 10 more ranges")
