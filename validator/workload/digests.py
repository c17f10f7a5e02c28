"""From leaves to digests on this rank: names to keys, tensors to bytes, bytes to a group's record."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from validator.errors import LaunchError
from validator.trajectory.groups import Group
from validator.trajectory.leaves import XXH3, Algorithm, LeafKey, LeafTable
from validator.trajectory.record import GroupRecord
from validator.workload.state import Leaf

#: Groups whose tensors stay where they are, so that what is known of their memory can be kept.
STATIONARY = frozenset(
    {
        Group.PARAMETERS,
        Group.GATHERED_PARAMETERS,
        Group.MAIN_PARAMETERS,
        Group.GRADIENTS,
        Group.OPTIMIZER,
        Group.BUFFERS,
    }
)

#: PyTorch's calls without the CPU stand-in's device mapping, which only costs time here.
plain_torch = torch._C.DisableTorchFunction


def content_of(leaf: Leaf) -> Any:
    """The leaf's raw bytes as a flat buffer: a view of the tensor's memory on the CPU, a copy of a device tensor's."""
    if not isinstance(leaf.source, Tensor):
        return leaf.source
    tensor = leaf.source.detach()
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    return tensor.view(-1).view(torch.uint8).numpy() if tensor.numel() else b""


@dataclass(frozen=True, slots=True)
class _View:
    """A tensor as it was last read: where and what it was, its key, and a view of its memory."""

    place: int
    dtype: torch.dtype
    shape: torch.Size
    shard: str
    key: LeafKey
    content: Any


class Digester:
    """Turns a group's leaves into its record. Keys, tables and views of memory are made once and found again by
    name.
    """

    def __init__(self, algorithm: Algorithm = XXH3) -> None:
        self.algorithm = algorithm
        self.hash: Callable[[Any, int], bytes] = algorithm.hash
        #: Whether what ``capture`` gives may still be on its way when it returns.
        self.defers = False
        #: Who computes the digests, for the end record.
        self.described = {"algorithm": algorithm.name, "implementation": "host", "why": ""}
        self._keys: dict[Group, dict[str, tuple[Any, Any, str, LeafKey]]] = {group: {} for group in Group}
        self._views: dict[Group, dict[str, _View]] = {group: {} for group in STATIONARY}
        self._tables: dict[Group, LeafTable] = {}
        self._names: dict[Group, tuple[LeafTable, frozenset[str]]] = {}

    def record(self, group: Group, leaves: Sequence[Leaf]) -> GroupRecord:
        """Digest every leaf; raises ``LaunchError`` where two leaves of the group share a name."""
        keys: list[LeafKey] = []
        contents: list[Any] = []
        views = self._views.get(group)
        for leaf in leaves:
            view = None if views is None else self._view(group, views, leaf)
            if view is not None:
                keys.append(view.key)
                contents.append(view.content)
            else:
                keys.append(self.key(group, leaf))
                contents.append(content_of(leaf))
        # No Python between two hashes: with tensors of a quarter megabyte that alone would cost a tenth.
        digests = b"".join(map(self.hash, contents, [key.seed for key in keys]))
        return GroupRecord(self._table(group, tuple(keys)), digests)

    def capture(self, group: Group, leaves: Sequence[Leaf]) -> Callable[[], GroupRecord]:
        """``record``, but its result is asked for later: a device may still be computing it when this returns."""
        record = self.record(group, leaves)
        return lambda: record

    def send(self) -> None:
        """All groups of a moment are captured; nothing to do where they are already here."""

    def answer(self, key: LeafKey, content: Any) -> bytes:
        """The digest that ``record`` gives a leaf of this key and content."""
        return self.hash(content, key.seed)

    def key(self, group: Group, leaf: Leaf) -> LeafKey:
        """The leaf's key; the same object as last time, as long as dtype, shape and shard stay."""
        source = leaf.source
        dtype, shape = (source.dtype, source.shape) if isinstance(source, Tensor) else (leaf.dtype, len(source))
        known = self._keys[group].get(leaf.name)
        if known is not None and known[0] == dtype and known[1] == shape and known[2] == leaf.shard:
            return known[3]
        if isinstance(source, Tensor):
            key = LeafKey(leaf.name, str(source.dtype).removeprefix("torch."), tuple(source.shape), leaf.shard)
        elif leaf.dtype in ("", "bytes"):
            key = LeafKey(leaf.name, "bytes", (len(source),), leaf.shard)
        else:
            key = LeafKey(leaf.name, leaf.dtype, (), leaf.shard)
        self._keys[group][leaf.name] = (dtype, shape, leaf.shard, key)
        return key

    def covers(self, group: Group, name: str) -> bool:
        """Whether the group's last fingerprint had a leaf of this name."""
        table = self._tables.get(group)
        if table is None:
            return False
        names = self._names.get(group)
        if names is None or names[0] is not table:
            names = self._names[group] = (table, frozenset(key.name for key in table.keys))
        return name in names[1]

    def _table(self, group: Group, keys: tuple[LeafKey, ...]) -> LeafTable:
        table = self._tables.get(group)
        if table is None or len(table.keys) != len(keys) or any(map(operator.is_not, table.keys, keys)):
            if len({key.name for key in keys}) != len(keys):
                raise LaunchError(
                    f"two leaves of the state group {group} have one name; the recorder cannot tell them apart."
                )
            table = self._tables[group] = LeafTable(keys)
        return table

    def _view(self, group: Group, views: dict[str, _View], leaf: Leaf) -> _View | None:
        """The view of a leaf that lies still in the CPU's memory, ``None`` for any other.

        It is kept as long as the tensor stays where and what it is, and keeps that memory from being reused.
        """
        name, source, shard, _ = leaf
        if not isinstance(source, Tensor) or not source.is_cpu or not source.is_contiguous():
            return None
        known = views.get(name)
        if (
            known is not None
            and known.place == source.data_ptr()
            and known.dtype is source.dtype
            and known.shape == source.shape
            and known.shard == shard
        ):
            return known
        key, content = self.key(group, leaf), content_of(leaf)
        view = views[name] = _View(source.data_ptr(), source.dtype, source.shape, shard, key, content)
        return view
