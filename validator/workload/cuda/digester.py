"""Digests of leaves on a GPU, where they lie; leaves in the host's memory get the same digest from NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from validator.errors import LaunchError
from validator.trajectory.groups import Group
from validator.trajectory.leaves import DIGEST_BYTES, MIXSUM, LeafKey
from validator.trajectory.record import GroupRecord
from validator.workload.cuda.contents import Contents
from validator.workload.cuda.implementation import Implementation, choose, digests_of
from validator.workload.cuda.transfers import Slot
from validator.workload.digests import STATIONARY, Digester, content_of
from validator.workload.state import Leaf

#: Rows of a buffer to begin with; it grows with the first step that has more leaves.
_ROWS = 4096


class _Known(NamedTuple):
    """A contiguous tensor as it was last captured: where and what it was, and what follows from that.

    Nothing of its memory is kept. The digest reads whatever lies at ``address`` when it is queued, which is the leaf
    as long as the leaf's tensor says that it lies there and is of this dtype and shape.
    """

    address: int
    dtype: torch.dtype
    shape: torch.Size
    shard: str
    size: int
    key: LeafKey


class DeviceDigester(Digester):
    """A ``Digester`` whose ``capture`` queues work on the device and returns at once."""

    def __init__(self, device: torch.device, implementation: Implementation | None = None) -> None:
        super().__init__(MIXSUM)
        self.defers = True
        self._device = device
        self._on_gpu = device.type == "cuda"
        chosen = implementation or choose(device)
        self.sum_lanes = chosen.sum_lanes
        self.described = {"algorithm": MIXSUM.name, "implementation": chosen.sum_lanes.name, "why": chosen.why}
        self._slots = [Slot(device, _ROWS)]
        self._known: dict[Group, dict[str, _Known]] = {group: {} for group in STATIONARY}

    def capture(self, group: Group, leaves: Sequence[Leaf]) -> Callable[[], GroupRecord]:
        """Digest every leaf as it is now, in the order of the device's work; the result is there when asked for.

        Raises ``LaunchError`` where two leaves share a name, or one has no plain memory to read.
        """
        known = self._known.get(group, {})
        keys: list[LeafKey] = []
        aside: list[tuple[int, Leaf]] = []
        tensors: list[Tensor] = []
        addresses: list[int] = []
        sizes: list[int] = []
        seeds: list[int] = []
        for index, leaf in enumerate(leaves):
            name, source, shard, _ = leaf
            if not isinstance(source, Tensor) or source.is_cuda is not self._on_gpu:
                keys.append(self.key(group, leaf))
                aside.append((index, leaf))
                continue
            found = known.get(name)
            if (
                found is None
                or found.address != source.data_ptr()
                or found.dtype is not source.dtype
                or found.shape != source.shape
                or found.shard != shard
                or not source.is_contiguous()
            ):
                source, found = self._look_at(group, leaf)
                known[name] = found
            keys.append(found.key)
            tensors.append(source)
            addresses.append(found.address)
            sizes.append(found.size)
            seeds.append(found.key.seed)
        table = self._table(group, tuple(keys))
        digests = {index: self.hash(content_of(leaf), keys[index].seed) for index, leaf in aside}
        if not tensors:
            record = GroupRecord(table, b"".join(digests.values()))
            return lambda: record
        slot = self._slot(len(tensors))
        lanes, where = slot.take(len(tensors))
        self.sum_lanes(Contents(tensors, addresses, sizes), seeds, lanes, group)
        answer: list[GroupRecord] = []

        def read() -> GroupRecord:
            if not answer:
                found = digests_of(slot.read(where), seeds, sizes)
                answer.append(GroupRecord(table, _interleaved(found, digests)))
            return answer[0]

        return read

    def send(self) -> None:
        """Begin to copy what was captured since the last time."""
        for slot in self._slots:
            slot.send()

    def record(self, group: Group, leaves: Sequence[Leaf]) -> GroupRecord:
        """``capture``, and wait for it."""
        return self.capture(group, leaves)()

    def answer(self, key: LeafKey, content: Any) -> bytes:
        """The digest that a leaf of this key and content gets on the device."""
        lanes = torch.zeros((1, 2), dtype=torch.int64, device=self._device)
        source = torch.frombuffer(bytearray(content), dtype=torch.uint8) if len(content) else torch.empty(0)
        self.sum_lanes(Contents.of([source.to(self._device, torch.uint8)]), [key.seed], lanes)
        return digests_of(lanes, [key.seed], [len(content)])

    def _slot(self, rows: int) -> Slot:
        """The largest buffer with room for so many rows, or a new one of twice the size, so that one is soon enough."""
        roomy = [slot for slot in self._slots if slot.room >= rows]
        if roomy:
            return max(roomy, key=lambda slot: slot.capacity)
        capacity = 2 * max(rows, *(slot.capacity for slot in self._slots))
        self._slots = [slot for slot in self._slots if not slot.idle]
        self._slots.append(Slot(self._device, capacity))
        return self._slots[-1]

    def _look_at(self, group: Group, leaf: Leaf) -> tuple[Tensor, _Known]:
        """The leaf's tensor, or a copy of it in row order where its elements do not lie so, and what it is.

        Raises ``LaunchError`` for a tensor that has no plain memory of its own.
        """
        tensor = leaf.source
        assert isinstance(tensor, Tensor)
        tensor = tensor.detach()
        if tensor.layout is not torch.strided or (tensor.numel() and not tensor.data_ptr()):
            raise LaunchError(
                f"the leaf {group}/{leaf.name} is a {type(leaf.source).__name__} of layout {tensor.layout} without "
                "plain memory, which the recorder cannot read."
            )
        tensor = tensor.contiguous()
        key = self.key(group, leaf)
        return tensor, _Known(tensor.data_ptr(), tensor.dtype, tensor.shape, leaf.shard, tensor.nbytes, key)


def _interleaved(found: bytes, others: dict[int, bytes]) -> bytes:
    """Digests one after the other, with the ``others`` at their places among them."""
    if not others:
        return found
    whole = bytearray()
    rest = iter(range(0, len(found), DIGEST_BYTES))
    for index in range(len(found) // DIGEST_BYTES + len(others)):
        other = others.get(index)
        if other is None:
            at = next(rest)
            other = found[at : at + DIGEST_BYTES]
        whole += other
    return bytes(whole)
