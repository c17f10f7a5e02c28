"""``mixsum`` over arrays of words, with NumPy: many words of one leaf, and the digests of many leaves."""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from validator.trajectory.mixsum import FIRST_FACTOR, LANE_FACTOR, MASK, SECOND_FACTOR, STEP

Words = NDArray[np.uint64]

#: Words that are mixed at a time, so that they stay in a core's cache.
_BLOCK = 1 << 14


def mix_words(words: Words) -> Words:
    """``mix`` of every word; a new array."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(FIRST_FACTOR)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(SECOND_FACTOR)
    return words ^ (words >> np.uint64(31))


def spread_words(words: Words) -> Words:
    """``spread`` of every word; a new array."""
    words = (words ^ (words >> np.uint64(32))) * np.uint64(LANE_FACTOR)
    return words ^ (words >> np.uint64(29))


def lanes_of_words(view: memoryview, count: int, position: int) -> tuple[int, int]:
    """Both lanes of the first ``count`` whole words of ``view``, modulo 2**64.

    ``position`` is what the first word's position begins from, without its own step.
    """
    words = np.frombuffer(view, np.uint64, count)
    if sys.byteorder != "little":
        words = words.byteswap()
    steps = np.arange(1, _BLOCK + 1, dtype=np.uint64) * np.uint64(STEP)
    zero = one = 0
    for at in range(0, count, _BLOCK):
        block = words[at : at + _BLOCK]
        mixed = mix_words(block ^ (steps[: len(block)] + np.uint64((position + at * STEP) & MASK)))
        zero += int(mixed.sum(dtype=np.uint64))
        one += int(spread_words(mixed).sum(dtype=np.uint64))
    return zero & MASK, one & MASK


def digests(sums: Words, seeds: Words, sizes: Words) -> bytes:
    """Digests of many leaves from their lanes: ``sums`` uint64 [leaves, 2], ``seeds`` and ``sizes`` uint64 [leaves].

    16 bytes a leaf, in their order.
    """
    step = np.uint64(STEP)
    size = mix_words(mix_words(seeds + step) ^ sizes)
    both = np.stack((mix_words(sums[:, 0] ^ size), mix_words(sums[:, 1] ^ mix_words(size + step))), axis=1)
    return both.astype("<u8").tobytes()
