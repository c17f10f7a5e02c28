"""``mixsum`` in PyTorch's own integer operations, on any device: slow, and needs no compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from validator.trajectory.mixsum import FIRST_FACTOR, LANE_FACTOR, MASK, SECOND_FACTOR, STEP, WORD_BYTES, key_of
from validator.workload.cuda.contents import Contents

#: Words that are mixed at a time: what the intermediate results need is a few times 32 MiB.
_BLOCK = 1 << 22


class PlainLanes:
    """Sums lanes with PyTorch."""

    name = "PyTorch"

    def __call__(self, contents: Contents, seeds: Sequence[int], lanes: Tensor, place: Any = None) -> None:
        """Add each content's lanes to its row of ``lanes``, int64 [contents, 2]."""
        for content, seed, row in zip(contents.flat(), seeds, lanes, strict=True):
            add_lanes(content, key_of(seed), row)


def add_lanes(content: Tensor, position: int, row: Tensor, block: int = _BLOCK) -> None:
    """Add the lanes of ``content``, uint8 [bytes], to ``row``, int64 [2].

    ``position`` is what the first word's position begins from, without its own step.
    """
    steps = torch.arange(1, 1 + min(block, -(-content.numel() // WORD_BYTES)), device=content.device) * _signed(STEP)
    for at in range(0, content.numel(), block * WORD_BYTES):
        words = _words(content[at : at + block * WORD_BYTES])
        start = _signed(position + at // WORD_BYTES * STEP)
        mixed = _mix(words ^ (steps[: words.numel()] + start))
        row[0] += mixed.sum()
        row[1] += _spread(mixed).sum()


def _words(content: Tensor) -> Tensor:
    """The bytes as int64 words, the last one filled up with zeros; a copy where they do not lie as words do."""
    count = content.numel()
    if count % WORD_BYTES == 0 and content.storage_offset() % WORD_BYTES == 0 and content.data_ptr() % WORD_BYTES == 0:
        return content.view(torch.int64)
    filled = torch.zeros(-(-count // WORD_BYTES) * WORD_BYTES, dtype=torch.uint8, device=content.device)
    filled[:count] = content
    return filled.view(torch.int64)


def _mix(words: Tensor) -> Tensor:
    words = (words ^ _shifted(words, 30)) * _signed(FIRST_FACTOR)
    words = (words ^ _shifted(words, 27)) * _signed(SECOND_FACTOR)
    return words ^ _shifted(words, 31)


def _spread(words: Tensor) -> Tensor:
    words = (words ^ _shifted(words, 32)) * _signed(LANE_FACTOR)
    return words ^ _shifted(words, 29)


def _shifted(words: Tensor, count: int) -> Tensor:
    """Shifted right with zeros coming in: PyTorch's own shift of int64 brings in the sign."""
    return (words >> count) & ((1 << (64 - count)) - 1)


def _signed(number: int) -> int:
    """The int64 with the same bits."""
    number &= MASK
    return number - (1 << 64) if number >> 63 else number
