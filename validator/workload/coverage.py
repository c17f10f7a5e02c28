"""Complete coverage: every tensor of parameters, buffers, optimizer state and checkpoint maps to a leaf.

The tensors are found another way than the recorder finds them, and looked up among the leaves that were really
digested.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import xxhash
from torch import Tensor

from validator.trajectory.groups import PERSISTENT_GROUPS, Group
from validator.workload import megatron_internals
from validator.workload.digests import Digester, content_of
from validator.workload.state import Leaf, TrainingState


class Coverage:
    """Counts what is covered and names what is not."""

    def __init__(self) -> None:
        self._counts = {"parameters": 0, "buffers": 0, "optimizer": 0, "checkpoint": 0}
        self._unmapped: list[str] = []

    def report(self) -> dict[str, Any]:
        """Numbers of covered tensors by kind, and the names of those that map to no leaf."""
        return {**self._counts, "unmapped": sorted(set(self._unmapped))}

    def check_state(self, state: TrainingState, digester: Digester) -> None:
        """Compare what lives in memory with the leaves of the last fingerprint."""
        for name, parameter in state.named_parameters():
            for part, _ in megatron_internals.plain_parts(name, parameter):
                self._expect("parameters", part, digester.covers(Group.GATHERED_PARAMETERS, part))
        for name, shard in state.shards():
            if shard.shard is not None:
                self._expect("parameters", name, digester.covers(Group.PARAMETERS, name))
            if shard.main is not shard.shard:
                self._expect("parameters", f"{name} (main)", digester.covers(Group.MAIN_PARAMETERS, name))
        for name, _ in state.named_buffers():
            self._expect("buffers", name, digester.covers(Group.BUFFERS, name))
        owners = {id(shard.main): name for name, shard in state.shards()}
        for one in megatron_internals.inner_optimizers(state.optimizer):
            for parameter, values in one.optimizer.state.items():
                owner = owners.get(id(parameter))
                for key, value in values.items():
                    if isinstance(value, Tensor):
                        name = f"{owner}/{key}"
                        self._expect("optimizer", name, owner is not None and digester.covers(Group.OPTIMIZER, name))

    def check_checkpoint(self, checkpoint: Mapping[str, Any], state: TrainingState, digester: Digester) -> None:
        """Compare what a save is about to write with the leaves as they are now, by memory or else by content.

        ``checkpoint`` is Megatron's sharded state dictionary. Its padding is local and never written.
        """
        known = _Known(
            leaf
            for group in (*PERSISTENT_GROUPS, Group.GATHERED_PARAMETERS)
            for leaf in state.leaves(group)
            if digester.covers(group, leaf.name)
        )
        for name, value in _contents(checkpoint):
            self._expect("checkpoint", name, isinstance(value, Tensor) and value in known)

    def _expect(self, kind: str, name: str, covered: bool) -> None:
        self._counts[kind] += covered
        if not covered:
            self._unmapped.append(f"{kind}: {name}")


class _Known:
    """The leaves that were digested, to look tensors up in by their place in memory, or else by their content.

    Only leaves as long as a tensor that lies elsewhere are hashed: a save would else copy a GPU's whole state to the
    host.
    """

    def __init__(self, leaves: Iterable[Leaf]) -> None:
        self._places: set[int] = set()
        self._by_length: dict[int, list[Leaf]] = {}
        self._digests: dict[int, set[bytes]] = {}
        for leaf in leaves:
            if isinstance(leaf.source, Tensor):
                self._places.add(leaf.source.data_ptr())
            self._by_length.setdefault(_length(leaf.source), []).append(leaf)

    def __contains__(self, tensor: Tensor) -> bool:
        if tensor.numel() == 0 or tensor.data_ptr() in self._places:
            return True
        length = _length(tensor)
        if length not in self._digests:
            alike = self._by_length.get(length, ())
            self._digests[length] = {xxhash.xxh3_128_digest(content_of(leaf)) for leaf in alike}
        return xxhash.xxh3_128_digest(content_of(Leaf("", tensor))) in self._digests[length]


def _length(source: Tensor | bytes) -> int:
    return source.numel() * source.element_size() if isinstance(source, Tensor) else len(source)


def _unpickled(value: Tensor | io.BytesIO | bytes) -> Any:
    """What this launch's own process pickled a moment ago; nothing where it is empty."""
    if isinstance(value, Tensor):
        content = bytes(content_of(Leaf("", value)))
    else:
        content = value.getvalue() if isinstance(value, io.BytesIO) else value
    return pickle.loads(content) if content else {}  # noqa: S301 - its own process wrote it


def _contents(value: Any, path: str = "") -> Iterator[tuple[str, Tensor | bytes]]:
    """Every tensor, and every non-empty blob, in a sharded state dictionary, with its path.

    What Transformer Engine pickles as its modules' extra state is opened: it holds FP8's scales and amax histories.
    """
    if path.endswith("_extra_state") and isinstance(value, Tensor | io.BytesIO | bytes):
        yield from _contents(_unpickled(value), f"{path}/opened")
    elif isinstance(value, Tensor):
        yield path, value
    elif isinstance(value, Mapping):
        if getattr(value.get("padding"), "obj", False):
            return  # the distributed optimizer's filling between parameters, which holds no state
        for key, item in value.items():
            yield from _contents(item, f"{path}/{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _contents(item, f"{path}/{index}")
    elif isinstance(value, io.BytesIO):
        if value.getbuffer().nbytes:
            yield path, value.getvalue()
    elif hasattr(value, "key") and hasattr(value, "data"):  # a sharded tensor, object, or factory of such
        yield from _contents(value.data, path)
