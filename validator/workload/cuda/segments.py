"""Pieces of work for the digest kernel: thousands of tensors, cut so that a GPU's blocks share them evenly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from validator.trajectory.mixsum import STEP, WORD_BYTES
from validator.trajectory.mixsum_words import mix_words

#: Columns of the table of pieces.
ADDRESS, BYTES, POSITION, LEAF = range(4)
FIELDS = 4

#: Words of one piece: long enough that a block's start and end cost nothing, short enough that a GPU's hundreds of
#: blocks all have work on a tensor of some megabytes.
PIECE_WORDS = 1 << 15


def cut(
    addresses: Sequence[int], sizes: Sequence[int], seeds: Sequence[int], words: int = PIECE_WORDS
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tables of pieces, int64 [pieces, 4], for leaves of ``sizes`` bytes at ``addresses``.

    The first table has the pieces at addresses that are multiples of 8, the second all others. A row is the piece's
    address, its length in bytes, what its first word's position begins from (the bits of an unsigned number), and the
    leaf's index. A leaf without bytes has no piece.
    """
    start = np.array(addresses, np.int64)
    size = np.array(sizes, np.int64)
    key = mix_words(np.array(seeds, np.uint64) + np.uint64(STEP))
    piece_bytes = words * WORD_BYTES
    counts = -(-size // piece_bytes)
    leaf = np.repeat(np.arange(len(size)), counts)
    number = np.arange(len(leaf)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.empty((len(leaf), FIELDS), np.int64)
    table[:, ADDRESS] = start[leaf] + number * piece_bytes
    table[:, BYTES] = np.minimum(size[leaf] - number * piece_bytes, piece_bytes)
    table[:, POSITION] = (key[leaf] + number.astype(np.uint64) * np.uint64(words) * np.uint64(STEP)).view(np.int64)
    table[:, LEAF] = leaf
    aligned = table[:, ADDRESS] % WORD_BYTES == 0
    return table[aligned], table[~aligned]
