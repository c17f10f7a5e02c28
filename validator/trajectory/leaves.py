"""Leaves, their digests, and how digests fold into one root (a Merkle tree).

Everything here works on bytes: bits, not values. −0.0 and NaN payloads count, and so does the order of elements.

A leaf's digest is XXH3-128 (https://github.com/Cyan4973/xxHash) in launches on the CPU and ``mixsum`` in launches on a
GPU; what folds leaves into one root is XXH3-128 in both. They find accidents, not forgeries.
"""

from __future__ import annotations

import struct
from collections.abc import Buffer, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import xxhash

from validator.trajectory import mixsum

DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A leaf digest: its name and version, and (content, seed of the leaf's key) -> 16 bytes.

    Trajectories of different algorithms are never compared.
    """

    name: str
    hash: Callable[[Buffer, int], bytes]


XXH3 = Algorithm("xxh3-128/1", xxhash.xxh3_128_digest)
MIXSUM = Algorithm("mixsum-128/1", mixsum.digest)

#: Every algorithm that this version reads, by name.
ALGORITHMS: Mapping[str, Algorithm] = {algorithm.name: algorithm for algorithm in (XXH3, MIXSUM)}


@dataclass(frozen=True)
class LeafKey:
    """What a leaf is, apart from its bytes.

    ``name`` is unique within its group and rank. ``dtype`` is a torch dtype without the prefix (``bfloat16``), or
    ``bytes`` for an opaque state. ``shard`` says which part of a larger tensor this rank holds, as ``start:end/total``
    in flattened elements; it is empty where the rank holds all of it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    shard: str = ""

    @cached_property
    def seed(self) -> int:
        """64 bits that bind dtype, shape and shard position, but not the name, into the leaf's digest."""
        shape = "x".join(map(str, self.shape))
        return xxhash.xxh3_64_intdigest(f"{self.dtype}|{shape}|{self.shard}".encode())


def leaf_digest(key: LeafKey, content: Buffer, algorithm: Algorithm = XXH3) -> bytes:
    """Digest of one leaf: 16 bytes over ``content`` (C-contiguous, little-endian), bound to dtype, shape, shard."""
    return algorithm.hash(content, key.seed)


@dataclass(frozen=True)
class LeafTable:
    """The leaves of one group on one rank, in the order in which their digests are stored."""

    keys: tuple[LeafKey, ...]

    @cached_property
    def digest(self) -> bytes:
        """Binds names to positions: a renamed leaf changes the group's digest though its own stays."""
        return xxhash.xxh3_128_digest("\n".join(key.name for key in self.keys).encode())

    def __len__(self) -> int:
        return len(self.keys)


def fold_group(table: LeafTable, digests: Buffer) -> bytes:
    """Digest of a group: ``digests`` are its leaves' digests, 16 bytes each, in the table's order."""
    hasher = xxhash.xxh3_128(table.digest)
    hasher.update(digests)
    return hasher.digest()


def fold_named(children: Iterable[tuple[str, bytes]]) -> bytes:
    """Digest over named children in the given order.

    Folds groups into a rank's moment, ranks into a moment, moments into a root.
    """
    hasher = xxhash.xxh3_128()
    for name, digest in children:
        encoded = name.encode()
        hasher.update(struct.pack("<I", len(encoded)) + encoded + digest)
    return hasher.digest()


def fold_ranks(digests: Mapping[int, bytes]) -> bytes:
    """Digest of a moment: its ranks' digests, by rank."""
    return fold_named((f"rank:{rank}", digests[rank]) for rank in sorted(digests))
