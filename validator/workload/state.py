"""What a rank holds, state group by state group, as named leaves. Reads only; copies nothing that is a tensor."""

from __future__ import annotations

import functools
import itertools
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy
import torch
from torch import Tensor

from validator.trajectory.groups import Group
from validator.workload import megatron_internals
from validator.workload.megatron_internals import OwnedShard
from validator.workload.module_tree import ModuleTree


class Leaf(NamedTuple):
    """One tensor, or the bytes of an opaque state, under its name within the group; ``shard`` as in ``LeafKey``."""

    name: str
    source: Tensor | bytes
    shard: str = ""
    dtype: str = ""


def number(name: str, value: Any) -> Leaf:
    """A scalar as a leaf: int64 or float64 by its bits, anything else by its representation."""
    if isinstance(value, bool | int) and -(2**63) <= int(value) < 2**63:
        return Leaf(name, struct.pack("<q", int(value)), dtype="int64")
    if isinstance(value, float):
        return Leaf(name, struct.pack("<d", value), dtype="float64")
    return Leaf(name, repr(value).encode(), dtype="bytes")


class TrainingState:
    """The persistent state of one rank's training, and the shards whose gradients the optimizer reads."""

    def __init__(self, model: list[Any], optimizer: Any, scheduler: Any, args: Any) -> None:
        self.modules = megatron_internals.modules_of(model)
        self._trees = [ModuleTree(module) for module in self.modules]
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.args = args
        self.names = {id(parameter): name for name, parameter in self.named_parameters()}
        self._shards = [
            (self.names[id(shard.parameter)], shard, f"{shard.start}:{shard.end}/{shard.parameter.numel()}")
            for shard in megatron_internals.owned_shards(optimizer)
        ]
        self._collectors: dict[Group, Callable[[], Iterator[Leaf]]] = {
            Group.PARAMETERS: self._parameters,
            Group.GATHERED_PARAMETERS: self._gathered_parameters,
            Group.MAIN_PARAMETERS: self._main_parameters,
            Group.GRADIENTS: self._gradients,
            Group.OPTIMIZER: self._optimizer,
            Group.BUFFERS: self._buffers,
            Group.RNG: self._rng,
            Group.DATA_POSITION: self._data_position,
            Group.SCHEDULE: self._schedule,
        }

    def leaves(self, group: Group) -> list[Leaf]:
        """The group's leaves as they are now. ``gradients`` and ``gathered_parameters`` mean something only just
        before an update.
        """
        return list(self._collectors[group]())

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter of every model chunk on this rank."""
        for prefix, tree in self._chunks():
            for name, parameter in tree.look().parameters:
                yield prefix + name, parameter

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Every buffer, in checkpoints or not, and FP8's scales and amax histories."""
        for prefix, tree in self._chunks():
            found = tree.look()
            for name, buffer in (*found.buffers, *megatron_internals.fp8_states(found.modules)):
                yield prefix + name, buffer

    def shards(self) -> Iterator[tuple[str, OwnedShard]]:
        """Parameter shards that this rank owns, with the parameter's name."""
        for name, shard, _ in self._shards:
            yield name, shard

    def _chunks(self) -> Iterator[tuple[str, ModuleTree]]:
        for index, tree in enumerate(self._trees):
            yield f"chunk{index}." if len(self._trees) > 1 else "", tree

    def _parameters(self) -> Iterator[Leaf]:
        for name, shard, span in self._shards:
            if shard.shard is not None:  # kept in FP8 only: the main parameter and the gathered one are all there is
                yield Leaf(name, shard.shard, span)
        for name, parameter in self.named_parameters():
            if not parameter.requires_grad:
                yield from itertools.starmap(Leaf, megatron_internals.plain_parts(name, parameter))

    def _gathered_parameters(self) -> Iterator[Leaf]:
        for name, parameter in self.named_parameters():
            yield from itertools.starmap(Leaf, megatron_internals.plain_parts(name, parameter))

    def _main_parameters(self) -> Iterator[Leaf]:
        for name, shard, span in self._shards:
            if shard.main is not shard.shard:
                yield Leaf(name, shard.main, span)

    def _gradients(self) -> Iterator[Leaf]:
        for name, shard, span in self._shards:
            yield Leaf(name, shard.gradient, span)

    def _optimizer(self) -> Iterator[Leaf]:
        for name, shard, span in self._shards:
            for key, value in shard.state.items():
                full = _part_of(name, key)
                yield Leaf(full, value, span) if isinstance(value, Tensor) else number(full, value)
        for position, one in enumerate(megatron_internals.inner_optimizers(self.optimizer)):
            for index, group in enumerate(one.optimizer.param_groups):
                for key, value in group.items():
                    if key != "params":
                        yield number(f"optimizer{position}.group{index}/{key}", value)
            if one.grad_scaler is not None:
                for key, value in one.grad_scaler.state_dict().items():
                    yield _value(f"optimizer{position}.grad_scaler/{key}", value)

    def _buffers(self) -> Iterator[Leaf]:
        for name, buffer in self.named_buffers():
            yield Leaf(name, buffer)

    def _rng(self) -> Iterator[Leaf]:
        yield Leaf("python", repr(random.getstate()).encode())
        algorithm, keys, position, has_gauss, gauss = numpy.random.get_state()
        yield Leaf("numpy", keys.tobytes() + repr((algorithm, position, has_gauss, gauss)).encode())
        yield Leaf("cpu", torch.get_rng_state())
        yield Leaf("device", torch.cuda.get_rng_state())
        for name, state in megatron_internals.random_tracker_states().items():
            yield Leaf(name, megatron_internals.state_tensor(state))

    def _data_position(self) -> Iterator[Leaf]:
        for name in ("consumed_train_samples", "consumed_valid_samples", "skipped_train_samples"):
            yield number(name, getattr(self.args, name))

    def _schedule(self) -> Iterator[Leaf]:
        for key, value in self.scheduler.state_dict().items():
            yield number(key, value)
        yield number("global_batch_size", megatron_internals.global_batch_size())
        yield number("micro_batches", megatron_internals.micro_batches())


@functools.cache
def _part_of(name: str, key: str) -> str:
    """The name of a part. The same string each time: looking a new one up among thousands costs its hash."""
    return f"{name}/{key}"


def _value(name: str, value: Any) -> Leaf:
    return Leaf(name, value) if isinstance(value, Tensor) else number(name, value)
