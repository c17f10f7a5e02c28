"""Leaves, their digests, and how digests fold into one root (a Merkle tree).

Everything here works on bytes: bits, not values. −0.0 and NaN payloads count, and so does the order of elements.

The digest is XXH3-128 (https://github.com/Cyan4973/xxHash), which finds accidents, not forgeries.
"""

from __future__ import annotations

import struct
from collections.abc import Buffer, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import xxhash

#: Name and version of the leaf digest; trajectories of different algorithms are never compared.
ALGORITHM = "xxh3-128/1"

DIGEST_BYTES = 16


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


#: The hash under every leaf: (content, seed of the leaf's key) -> 16 bytes.
hash_content: Callable[[Buffer, int], bytes] = xxhash.xxh3_128_digest


def leaf_digest(key: LeafKey, content: Buffer) -> bytes:
    """Digest of one leaf: 16 bytes over ``content`` (C-contiguous, little-endian), bound to dtype, shape, shard."""
    return hash_content(content, key.seed)


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


def _pattern(size: int) -> bytes:
    """``size`` bytes 0, 1, …, 250, 0, 1, …: a period that fits no word or stripe of the hash."""
    period = bytes(range(251))
    return (period * (size // len(period) + 1))[:size]


#: (leaf, content, digest in hex): what a sound recorder must reproduce, checked at every launch's start. The lengths
#: take each of the hash's paths: 0, 1 to 3, 4 to 8, 9 to 16, 17 to 128, 129 to 240 and more than 240 bytes, one block
#: and many. The digests were computed with the C library xxHash 0.8.1, which is not the one that this package calls.
KNOWN_ANSWERS: tuple[tuple[LeafKey, bytes, str], ...] = (
    (LeafKey("empty", "bytes", (0,)), b"", "bad6da9e458675050a6e1023f9c8e901"),
    (LeafKey("one byte", "bytes", (1,)), b"\xa5", "3b45c3dc4a1dfac2c9d4a19817e750db"),
    (LeafKey("bfloat16 ones", "bfloat16", (2, 4)), b"\x80\x3f" * 8, "e246bef487c2ab16b5fcb478bb7c255c"),
    (LeafKey("bfloat16 pattern", "bfloat16", (60,)), _pattern(120), "5680c37eea60c31a759117dc662a8c9a"),
    (LeafKey("float32 pattern", "float32", (60,)), _pattern(240), "d822ff93fa61f2404b043a38e029267c"),
    (LeafKey("float32 long", "float32", (61,)), _pattern(244), "346a42450de10f08ddc9438e9fa522c8"),
    (LeafKey("float32 shard", "float32", (16, 16), "64:125/256"), _pattern(244), "29a0abeb116c4afdca45fd72ba6b4a76"),
    (LeafKey("bfloat16 long", "bfloat16", (17, 241)), _pattern(8194), "86b43cada2b43a4ea61c6f4c75379e41"),
    (LeafKey("opaque state", "bytes", (5000,)), _pattern(5000), "f4b92cdd2dd737686426e07d74d5a85a"),
    (LeafKey("float32 1 MiB", "float32", (512, 512)), _pattern(1 << 20), "a6c5732553c20ca1d91976a4b1a53e41"),
    (LeafKey("positive zero", "float32", ()), bytes.fromhex("00000000"), "87de04c7670d3861426543a37a320a5d"),
    (LeafKey("negative zero", "float32", ()), bytes.fromhex("00000080"), "052ac6ac5443a3dd731abfd6fe795df3"),
    (LeafKey("quiet NaN", "float32", ()), bytes.fromhex("0000c07f"), "90de7b75a86328dff9c782af1b54a1eb"),
    (LeafKey("NaN with payload", "float32", ()), bytes.fromhex("0100c07f"), "190c1e72c64f5dcf57136c9b6cfa432a"),
)


def check_known_answers(digest: Callable[[LeafKey, bytes], bytes] = leaf_digest) -> dict[str, str]:
    """What ``digest``, a recorder's own way to digest a leaf, answers: name of the vector -> hex.

    A sound recorder's answers equal ``expected_answers()``; whoever asked compares.
    """
    return {key.name: digest(key, content).hex() for key, content, _ in KNOWN_ANSWERS}


def expected_answers() -> dict[str, str]:
    """What ``check_known_answers`` must return: name of the vector -> hex."""
    return {key.name: answer for key, _, answer in KNOWN_ANSWERS}
