"""Proof that the recorder sees: raw bytes of leaves that the host picked, and one bit flipped in every group."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from validator.execute.request import Sample
from validator.trajectory.groups import Group, Moment
from validator.trajectory.record import GroupRecord
from validator.workload.digests import Digester, content_of
from validator.workload.state import Leaf


class Samples:
    """Hands over the raw bytes of the leaves that the host picked before the launch began."""

    def __init__(self, wanted: Sequence[Sample], rank: int, directory: Path) -> None:
        self._wanted = {(sample.moment, sample.group): sample for sample in wanted if sample.rank == rank}
        self._directory = directory

    def hand_over(self, moment: Moment, group: Group, leaves: Sequence[Leaf], digester: Digester) -> None:
        """Write the picked leaf of this group at this moment, if there is one: ``.bin`` its bytes, ``.json`` its
        key.
        """
        sample = self._wanted.get((str(moment), str(group)))
        if sample is None or not leaves:
            return
        leaf = leaves[sample.pick % len(leaves)]
        key = digester.key(group, leaf)
        self._directory.mkdir(exist_ok=True)
        path = self._directory / sample.stem
        path.with_suffix(path.suffix + ".bin").write_bytes(bytes(content_of(leaf)))
        described = {
            "moment": str(moment),
            "group": str(group),
            "index": sample.pick % len(leaves),
            "leaf": {"name": key.name, "dtype": key.dtype, "shape": key.shape, "shard": key.shard},
        }
        path.with_suffix(path.suffix + ".json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8")


def flip_and_restore(
    group: Group,
    seed: int,
    collect: Callable[[], list[Leaf]],
    record: Callable[[list[Leaf]], GroupRecord],
    before: GroupRecord,
) -> dict[str, Any]:
    """Flip one bit of one leaf where it lives, fingerprint the group anew, flip it back, and fingerprint it once more.

    States that are read as copies (random number generators, counters) are flipped in the copy. Returns the leaf's
    name and the group's digests ``before``, ``after`` and ``restored``, in hex.
    """
    leaves = collect()
    candidates = [index for index, leaf in enumerate(leaves) if _bytes_of(leaf)]
    if not candidates:
        return {}
    index = candidates[seed % len(candidates)]
    leaf = leaves[index]
    bit = seed // 7 % (8 * _bytes_of(leaf))
    if isinstance(leaf.source, Tensor) and group is not Group.RNG and leaf.source.is_contiguous():
        _flip(leaf.source, bit)
        after = record(collect())
        _flip(leaf.source, bit)
        restored = record(collect())
    else:
        original = bytearray(bytes(content_of(leaf)))
        original[bit // 8] ^= 1 << (bit % 8)
        changed = (
            torch.frombuffer(original, dtype=leaf.source.dtype).view(leaf.source.shape)
            if isinstance(leaf.source, Tensor)
            else bytes(original)
        )
        again = collect()
        again[index] = Leaf(leaf.name, changed, leaf.shard, leaf.dtype)
        after = record(again)
        restored = record(collect())
    return {
        "leaf": leaf.name,
        "before": before.digest.hex(),
        "after": after.digest.hex(),
        "restored": restored.digest.hex(),
    }


def _bytes_of(leaf: Leaf) -> int:
    return leaf.source.numel() * leaf.source.element_size() if isinstance(leaf.source, Tensor) else len(leaf.source)


@torch.no_grad()
def _flip(tensor: Tensor, bit: int) -> None:
    tensor.detach().view(-1).view(torch.uint8)[bit // 8] ^= 1 << (bit % 8)
