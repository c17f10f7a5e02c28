"""``mixsum`` as one Triton kernel: raw words of any dtype at any address, summed into two 64-bit lanes a leaf.

A block takes one piece of a leaf. Words at addresses that are no multiple of 8 are put together from two aligned ones,
so that every read is aligned. Blocks add their sums with integer atomics, whose order does not matter.
"""

from __future__ import annotations

import triton
import triton.language as tl

from validator.trajectory import mixsum
from validator.workload.cuda import segments

STEP = tl.constexpr(mixsum.STEP)
FIRST_FACTOR = tl.constexpr(mixsum.FIRST_FACTOR)
SECOND_FACTOR = tl.constexpr(mixsum.SECOND_FACTOR)
LANE_FACTOR = tl.constexpr(mixsum.LANE_FACTOR)
FIELDS = tl.constexpr(segments.FIELDS)

#: Words that a block reads at a time, and its warps: eight words in flight a thread.
BLOCK = 1024
WARPS = 4


@triton.jit
def _mix(words):
    words = (words ^ (words >> 30)) * FIRST_FACTOR
    words = (words ^ (words >> 27)) * SECOND_FACTOR
    return words ^ (words >> 31)


@triton.jit
def _spread(words):
    words = (words ^ (words >> 32)) * LANE_FACTOR
    return words ^ (words >> 29)


@triton.jit
def _load(base, index, offset, end, ALIGNED: tl.constexpr, WHOLE: tl.constexpr):
    """Words ``index`` of the content from ``offset`` to ``end`` bytes after the aligned ``base``.

    Nothing is read but aligned words that hold a byte of the content; with ``WHOLE`` all of them do.
    """
    low = tl.load(base + index) if WHOLE else tl.load(base + index, mask=index * 8 < end, other=0)
    if ALIGNED:
        return low
    shift = (offset * 8).to(tl.uint64)
    high = tl.load(base + index + 1) if WHOLE else tl.load(base + index + 1, mask=index * 8 + 8 < end, other=0)
    return (low >> shift) | (high << (64 - shift))


@triton.jit
def sum_lanes(pieces, lanes, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    """Add the lanes of piece ``program_id`` of ``pieces``, int64 [pieces, 4], to its leaf's row of ``lanes``, int64
    [leaves, 2].
    """
    piece = pieces + tl.program_id(0).to(tl.int64) * FIELDS
    address = tl.load(piece)
    size = tl.load(piece + 1)
    position = tl.load(piece + 2).to(tl.uint64, bitcast=True)
    row = lanes + 2 * tl.load(piece + 3)
    offset = address & 7
    base = (address - offset).to(tl.pointer_type(tl.uint64))
    end = offset + size
    index = tl.arange(0, BLOCK).to(tl.int64)
    places = position + (index + 1).to(tl.uint64) * STEP
    stride = tl.full((), BLOCK, tl.uint64) * STEP
    zero = tl.zeros([BLOCK], tl.uint64)
    one = tl.zeros([BLOCK], tl.uint64)
    for _ in range((size // (8 * BLOCK)).to(tl.int32)):
        mixed = _mix(_load(base, index, offset, end, ALIGNED, True) ^ places)
        zero += mixed
        one += _spread(mixed)
        index += BLOCK
        places += stride
    left = size - index * 8  # bytes of the content from each word on
    words = _load(base, index, offset, end, ALIGNED, False)
    cut = tl.minimum(tl.maximum(8 - left, 0), 7).to(tl.uint64) * 8
    mixed = _mix(((words << cut) >> cut) ^ places)
    mixed = tl.where(left > 0, mixed, 0)
    zero += mixed
    one += _spread(mixed)
    tl.atomic_add(row, tl.sum(zero, 0).to(tl.int64, bitcast=True), sem="relaxed")
    tl.atomic_add(row + 1, tl.sum(one, 0).to(tl.int64, bitcast=True), sem="relaxed")
