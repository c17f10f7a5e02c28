"""How leaves are cut into pieces of work."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from validator.trajectory.mixsum import MASK, STEP, key_of
from validator.workload.cuda.segments import ADDRESS, BYTES, LEAF, PIECE_WORDS, POSITION, cut

LEAVES = st.lists(st.tuples(st.integers(0, 2**40), st.integers(0, 500), st.integers(0, MASK)), max_size=20)


@given(LEAVES, st.integers(1, 9))
def test_pieces_cover_every_byte_once_with_the_right_positions(leaves: list[tuple[int, int, int]], words: int) -> None:
    addresses, sizes, seeds = ([leaf[column] for leaf in leaves] for column in range(3))
    aligned, others = cut(addresses, sizes, seeds, words)
    assert all(row[ADDRESS] % 8 == 0 for row in aligned)
    assert all(row[ADDRESS] % 8 for row in others)
    seen: dict[int, list[tuple[int, int]]] = {index: [] for index in range(len(leaves))}
    for row in (*aligned, *others):
        address, _, seed = leaves[int(row[LEAF])]
        start = int(row[ADDRESS]) - address
        assert start % (8 * words) == 0
        assert 0 < row[BYTES] <= 8 * words
        assert int(row[POSITION]) % 2**64 == (key_of(seed) + start // 8 * STEP) % 2**64
        seen[int(row[LEAF])].append((start, int(row[BYTES])))
    for index, (_, size, _) in enumerate(leaves):
        ends = 0
        for start, length in sorted(seen[index]):
            assert start == ends
            ends += length
        assert ends == size


def test_a_leaf_of_more_than_2_to_the_31_elements_is_cut_like_any_other() -> None:
    size = 3 * 2**33 + 5
    table, others = cut([4096], [size], [1])
    assert len(others) == 0
    assert len(table) == -(-size // (8 * PIECE_WORDS))
    last = table[-1]
    first_word = (len(table) - 1) * PIECE_WORDS
    assert first_word > 2**31
    assert int(last[ADDRESS]) == 4096 + 8 * first_word
    assert int(last[BYTES]) == size - 8 * first_word
    assert int(last[POSITION]) % 2**64 == (key_of(1) + first_word * STEP) % 2**64
