"""The leaf digest of launches on a GPU, as a definition; a Triton kernel and plain PyTorch compute it in a launch.

The content is read as little-endian 64-bit words ``w[0] … w[n-1]``, the last one filled up with zero bytes. With all
arithmetic modulo 2**64, ``mix`` a bijection of 64-bit numbers and ``key = mix(seed + STEP)``::

    h[i]  = mix(w[i] ^ (key + (i + 1) * STEP))        # a word, bound to its position and to the leaf's seed
    lane0 = sum of h[i]
    lane1 = sum of spread(h[i])                       # a second, independent look at the same words

    size   = mix(key ^ bytes)                         # length in bytes, so that trailing zeros count
    digest = mix(lane0 ^ size), mix(lane1 ^ mix(size + STEP)), 8 bytes each, little-endian

Sums of integers do not depend on the order of adding, so a GPU's blocks may come in any order; positions are in the
words' mixing, so the order of words counts. A change within one word always changes ``lane0``: ``mix`` is a bijection.

``mix`` is the finaliser of SplitMix64 with the increments of its sequence (Steele, Lea and Flood 2014, "Fast splittable
pseudorandom number generators"; its constants are David Stafford's variant 13). It finds accidents, not forgeries.
"""

from __future__ import annotations

from collections.abc import Buffer

#: Increment of SplitMix64's sequence: 2**64 divided by the golden ratio, made odd.
STEP = 0x9E3779B97F4A7C15
FIRST_FACTOR = 0xBF58476D1CE4E5B9
SECOND_FACTOR = 0x94D049BB133111EB
#: Multiplier of the second lane: that of MurmurHash3's 64-bit finaliser (Appleby, public domain).
LANE_FACTOR = 0xFF51AFD7ED558CCD

WORD_BYTES = 8
MASK = (1 << 64) - 1

#: Up to this many words Python's own integers are faster than NumPy's arrays.
_FEW = 24


def mix(value: int) -> int:
    """A bijection of 64-bit numbers in which every bit of the argument changes every bit of the value."""
    value = (value ^ (value >> 30)) * FIRST_FACTOR & MASK
    value = (value ^ (value >> 27)) * SECOND_FACTOR & MASK
    return value ^ (value >> 31)


def spread(value: int) -> int:
    """What the second lane adds for a mixed word; no multiple of it, and again a bijection."""
    value = (value ^ (value >> 32)) * LANE_FACTOR & MASK
    return value ^ (value >> 29)


def key_of(seed: int) -> int:
    """Where a leaf's sequence of positions begins."""
    return mix((seed + STEP) & MASK)


def lanes(content: Buffer, seed: int, first: int = 0) -> tuple[int, int]:
    """Both lanes of ``content``, whose first word is word number ``first`` of the leaf.

    The lanes of a leaf are the sums, modulo 2**64, of those of its pieces.
    """
    view = memoryview(content).cast("B")
    count, rest = divmod(len(view), WORD_BYTES)
    if count + (rest > 0) <= _FEW:
        return few_lanes(view, key_of(seed) + first * STEP)
    from validator.trajectory.mixsum_words import lanes_of_words  # noqa: PLC0415 - writing a trajectory needs no NumPy

    position = (key_of(seed) + first * STEP) & MASK
    zero, one = lanes_of_words(view, count, position)
    more = few_lanes(view[count * WORD_BYTES :], (position + count * STEP) & MASK)
    return (zero + more[0]) & MASK, (one + more[1]) & MASK


def digest(content: Buffer, seed: int) -> bytes:
    """Digest of one leaf's content: 16 bytes."""
    zero, one = lanes(content, seed)
    size = mix(key_of(seed) ^ memoryview(content).nbytes)
    return mix(zero ^ size).to_bytes(8, "little") + mix(one ^ mix((size + STEP) & MASK)).to_bytes(8, "little")


def few_lanes(view: memoryview, position: int) -> tuple[int, int]:
    """Both lanes, word by word; ``position`` is what the first word's position begins from, without its own step."""
    zero = one = 0
    for at in range(0, len(view), WORD_BYTES):
        position = (position + STEP) & MASK
        mixed = mix(int.from_bytes(view[at : at + WORD_BYTES], "little") ^ position)
        zero += mixed
        one += spread(mixed)
    return zero & MASK, one & MASK
