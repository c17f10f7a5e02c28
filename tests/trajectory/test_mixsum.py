"""The GPU's leaf digest: its definition, what it must tell apart, and how well it mixes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from validator.trajectory import mixsum
from validator.trajectory.mixsum_words import Words, digests, mix_words, spread_words

SEEDS = st.integers(0, mixsum.MASK)
CONTENTS = st.binary(max_size=300)


def by_hand(content: bytes, seed: int) -> tuple[int, int]:
    """Both lanes by the module's description, word by word in Python's integers."""
    filled = content + bytes(-len(content) % 8)
    zero = one = 0
    key = mixsum.mix((seed + mixsum.STEP) % 2**64)
    for index in range(len(filled) // 8):
        word = int.from_bytes(filled[8 * index : 8 * index + 8], "little")
        mixed = mixsum.mix(word ^ (key + (index + 1) * mixsum.STEP) % 2**64)
        zero, one = (zero + mixed) % 2**64, (one + mixsum.spread(mixed)) % 2**64
    return zero, one


def many(rows: Words, seed: int = 7) -> Words:
    """Lanes of ``rows``, uint64 [contents, words], as uint64 [contents, 2]."""
    places = np.arange(1, rows.shape[1] + 1, dtype=np.uint64) * np.uint64(mixsum.STEP)
    mixed = mix_words(rows ^ (places + np.uint64(mixsum.key_of(seed))))
    lanes = mixed, spread_words(mixed)
    return np.stack([lane.sum(axis=1, dtype=np.uint64) for lane in lanes], axis=1)


def distinct(lanes: Words) -> int:
    return len(np.unique(np.ascontiguousarray(lanes).view(np.dtype((np.void, 16)))))


@given(CONTENTS, SEEDS)
def test_the_lanes_are_those_of_the_definition(content: bytes, seed: int) -> None:
    assert mixsum.lanes(content, seed) == by_hand(content, seed)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 300_000), SEEDS)
def test_long_contents_too(draw: int, size: int, seed: int) -> None:
    content = np.random.default_rng(draw).bytes(size)
    assert mixsum.lanes(content, seed) == by_hand(content, seed)


def test_what_is_vectorised_here_is_the_digest() -> None:
    rows = np.random.default_rng(1).integers(0, 2**64, (50, 9), np.uint64)
    assert [tuple(map(int, pair)) for pair in many(rows)] == [mixsum.lanes(row.tobytes(), 7) for row in rows]


@given(st.lists(st.tuples(SEEDS, CONTENTS), max_size=20))
def test_many_digests_at_once_are_the_single_ones(leaves: list[tuple[int, bytes]]) -> None:
    sums = np.array([mixsum.lanes(content, seed) for seed, content in leaves], np.uint64).reshape(-1, 2)
    seeds = np.array([seed for seed, _ in leaves], np.uint64)
    sizes = np.array([len(content) for _, content in leaves], np.uint64)
    assert digests(sums, seeds, sizes) == b"".join(mixsum.digest(content, seed) for seed, content in leaves)


@given(st.binary(max_size=400), st.integers(0, 400), SEEDS)
def test_pieces_add_up_wherever_the_content_is_cut(content: bytes, cut: int, seed: int) -> None:
    at = min(cut // 8 * 8, len(content) // 8 * 8)
    pieces = mixsum.lanes(content[:at], seed), mixsum.lanes(content[at:], seed, at // 8)
    assert tuple(sum(lane) % 2**64 for lane in zip(*pieces, strict=True)) == mixsum.lanes(content, seed)


def test_positions_beyond_2_to_the_31_words_are_positions_of_their_own() -> None:
    places = [0, 1, 2**31 - 1, 2**31, 2**32, 2**32 + 1, 2**33, 2**61]
    assert len({mixsum.lanes(b"\x01" * 16, 3, place) for place in places}) == len(places)


@given(SEEDS, SEEDS)
def test_both_mixers_lose_nothing(one: int, other: int) -> None:
    assert (mixsum.mix(one) == mixsum.mix(other)) == (one == other)
    assert (mixsum.spread(one) == mixsum.spread(other)) == (one == other)


def test_every_single_bit_counts() -> None:
    content = bytearray(np.random.default_rng(2).bytes(517))
    seen = {mixsum.digest(content, 1)}
    for bit in range(8 * len(content)):
        content[bit // 8] ^= 1 << (bit % 8)
        seen.add(mixsum.digest(content, 1))
        content[bit // 8] ^= 1 << (bit % 8)
    assert len(seen) == 1 + 8 * len(content)


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from([2, 4, 8, 16, 64]), st.integers(2, 8))
def test_swapped_blocks_count(draw: int, size: int, count: int) -> None:
    # Rows of a matrix, experts of a layer, tokens of a batch: of one word, less or more.
    content = np.random.default_rng(draw).bytes(size * count)
    blocks = [content[at : at + size] for at in range(0, len(content), size)]
    seen = set()
    for left, right in itertools.combinations(range(count), 2):
        swapped = blocks.copy()
        swapped[left], swapped[right] = blocks[right], blocks[left]
        if swapped != blocks:
            seen.add(mixsum.digest(b"".join(swapped), 1))
    assert mixsum.digest(content, 1) not in seen


def test_shifts_zero_runs_and_constants_count() -> None:
    content = np.random.default_rng(3).bytes(256)
    contents = [content[at:] + content[:at] for at in range(256)]
    contents += [content + bytes(count) for count in range(1, 65)]
    contents += [bytes(count) for count in range(2049)]
    contents += [bytes([value]) * 64 for value in range(1, 256)]
    contents += [bytes(at) + b"\x01" + bytes(255 - at) for at in range(256)]
    assert len({mixsum.digest(each, 1) for each in contents}) == len(set(contents)) == len(contents)


def test_dtype_shape_and_shard_count_through_the_seed() -> None:
    assert len({mixsum.digest(b"same bytes", seed) for seed in range(1000)}) == 1000


def avalanche(pairs: int) -> NDArray[np.float64]:
    """How often each of the 128 bits flips when one bit of 4 random words does; the worst case is furthest from 1/2."""
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 2**64, (pairs, 4), np.uint64)
    flipped = rows.copy()
    chosen = rng.integers(0, 256, pairs)
    flipped[np.arange(pairs), chosen // 64] ^= np.uint64(1) << (chosen % 64).astype(np.uint64)
    size = np.full(pairs, 32, np.uint64)
    seeds = np.full(pairs, 7, np.uint64)
    both = [np.frombuffer(digests(many(each), seeds, size), np.uint8) for each in (rows, flipped)]
    bits = np.unpackbits((both[0] ^ both[1]).reshape(pairs, 16), axis=1)
    return bits.mean(axis=0)


def test_one_flipped_bit_flips_every_bit_of_the_digest_half_of_the_time() -> None:
    rates = avalanche(200_000)
    # Of 128 fair coins thrown 200,000 times, one is further than 0.0056 from one half less than once in 10,000 runs.
    assert abs(rates - 0.5).max() < 0.0056, rates
    assert abs(rates.mean() - 0.5) < 0.0005


def related(count: int, draw: int) -> Words:
    """Contents that a bug could take for one another: uint64 [about 4 * count, 4], all different.

    Two words changed by the same small amount and in opposite ways, words with few bits, words exchanged with small
    changes, and bf16 numbers that count.
    """
    rng = np.random.default_rng(draw)
    base = rng.integers(0, 2**64, 4, np.uint64)
    numbers = np.arange(1, count + 1, dtype=np.uint64)
    opposite = np.tile(base, (count, 1))
    opposite[:, 0] += numbers
    opposite[:, 1] -= numbers
    both = np.tile(base, (count, 1))
    both[:, 2] ^= numbers
    both[:, 3] ^= numbers
    sparse = np.zeros((count, 4), np.uint64)
    sparse[:, 0] = numbers
    moved = np.zeros((count, 4), np.uint64)
    moved[:, 1] = numbers
    return np.concatenate((opposite, both, sparse, moved))


def collisions(count: int) -> int:
    """Pairs with one digest, and pairs with one half of it, among ``4 * count`` related contents."""
    rows = related(count, 5)
    lanes = many(rows)
    return sum(len(rows) - distinct(np.stack((lane, lane), axis=1)) for lane in lanes.T) + len(rows) - distinct(lanes)


def test_no_two_related_contents_collide() -> None:
    assert collisions(50_000) == 0


@pytest.mark.nightly
def test_no_two_of_ten_million_related_contents_collide_in_either_lane() -> None:
    # Two of 10**7 random 64-bit numbers agree once in 370,000 runs: (10**7)**2 / 2 / 2**64.
    assert collisions(2_500_000) == 0
