"""Digests of leaves on a GPU, where they lie; leaves in the host's memory get the same digest from NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from validator.errors import LaunchError
from validator.trajectory.groups import Group
from validator.trajectory.leaves import DIGEST_BYTES, MIXSUM, LeafKey
from validator.trajectory.record import GroupRecord
from validator.workload.cuda.implementation import Implementation, choose, digests_of
from validator.workload.cuda.transfers import Slot
from validator.workload.digests import Digester, content_of
from validator.workload.state import Leaf

#: Rows of a buffer to begin with; it grows with the first step that has more leaves.
_ROWS = 4096


class DeviceDigester(Digester):
    """A ``Digester`` whose ``capture`` queues work on the device and returns at once."""

    def __init__(self, device: torch.device, implementation: Implementation | None = None) -> None:
        super().__init__(MIXSUM)
        self.defers = True
        self._device = device
        chosen = implementation or choose(device)
        self.sum_lanes = chosen.sum_lanes
        self.described = {"algorithm": MIXSUM.name, "implementation": chosen.sum_lanes.name, "why": chosen.why}
        self._slots = [Slot(device, _ROWS)]

    def capture(self, group: Group, leaves: Sequence[Leaf]) -> Callable[[], GroupRecord]:
        """Digest every leaf as it is now, in the order of the device's work; the result is there when asked for.

        Raises ``LaunchError`` where two leaves share a name, or one has no plain memory to read.
        """
        keys = tuple(self.key(group, leaf) for leaf in leaves)
        table = self._table(group, keys)
        found = bytearray(DIGEST_BYTES * len(keys))
        places: list[int] = []
        contents: list[Tensor] = []
        for index, (leaf, key) in enumerate(zip(leaves, keys, strict=True)):
            if isinstance(leaf.source, Tensor) and leaf.source.device.type == self._device.type:
                places.append(index)
                contents.append(flat_bytes(group, leaf))
            else:
                found[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES] = self.hash(content_of(leaf), key.seed)
        if not places:
            record = GroupRecord(table, bytes(found))
            return lambda: record
        seeds, sizes = [keys[index].seed for index in places], [content.numel() for content in contents]
        slot = self._slot(len(places))
        lanes, where = slot.take(len(places))
        self.sum_lanes(contents, seeds, lanes, group)
        answer: list[GroupRecord] = []

        def read() -> GroupRecord:
            if not answer:
                digests = digests_of(slot.read(where), seeds, sizes)
                for position, index in enumerate(places):
                    at = position * DIGEST_BYTES
                    found[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES] = digests[at : at + DIGEST_BYTES]
                answer.append(GroupRecord(table, bytes(found)))
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
        self.sum_lanes([source.to(self._device, torch.uint8)], [key.seed], lanes)
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


def flat_bytes(group: Group, leaf: Leaf) -> Tensor:
    """The leaf's memory as a flat uint8 tensor; a copy in row order where its elements do not lie so.

    Raises ``LaunchError`` for a tensor that has no plain memory of its own.
    """
    tensor = leaf.source
    assert isinstance(tensor, Tensor)
    tensor = tensor.detach()
    if tensor.layout is not torch.strided or (tensor.numel() and not tensor.data_ptr()):
        raise LaunchError(
            f"the leaf {group}/{leaf.name} is a {type(leaf.source).__name__} of layout {tensor.layout} without plain "
            "memory, which the recorder cannot read."
        )
    if not tensor.numel():
        return torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return tensor.contiguous().view(-1).view(torch.uint8)
