"""What training holds: modules, quantised parts, the optimizer's shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from validator.errors import LaunchError
from validator.workload.megatron_internals.versions import require


def modules_of(model: list[Any]) -> list[torch.nn.Module]:
    """The model chunks without their data-parallel and precision wrappers (whose ``buffers`` shadows PyTorch's)."""
    unwrap = require("megatron.core.utils", "unwrap_model")
    return list(unwrap(model))


#: What Transformer Engine keeps for delayed scaling beside a module's parameters, in the ``fp8_meta`` of its modules:
#: the names are those of 2.x (``transformer_engine/pytorch/module/base.py``).
_SCALING = ("scale", "scale_inv", "amax_history")


def fp8_states(modules: Iterable[tuple[str, torch.nn.Module]]) -> Iterator[tuple[str, Tensor]]:
    """Scales and amax histories of those ``modules`` (with their paths) that compute in FP8 with delayed scaling.

    They decide how the next step is rounded, and are no buffers of PyTorch's. Nothing for other recipes, which derive
    their scales from what they scale.
    """
    for path, part in modules:
        meta = vars(part).get("fp8_meta")  # an attribute of the module's own, which getattr would look for everywhere
        for key in sorted(meta, key=str) if isinstance(meta, Mapping) else ():
            for name in _SCALING:
                value = getattr(meta[key], name, None)
                if isinstance(value, Tensor):
                    yield f"{path}.fp8_meta.{key}.{name}".lstrip("."), value


_AXES = ("rowwise", "columnwise")


def plain_parts(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The tensor itself; for one of Transformer Engine's quantised ones its bytes and scales, each under a name of its
    own.

    Copies along the other axis are derived from the first and may be stale, so they count only where it is absent.
    """
    if not hasattr(tensor, "_data") and not hasattr(tensor, "_rowwise_data"):
        yield name, tensor
        return
    for data, scale in (("_data", "_scale_inv"), *((f"_{axis}_data", f"_{axis}_scale_inv") for axis in _AXES)):
        parts = [(part, getattr(tensor, part, None)) for part in (data, scale)]
        if isinstance(parts[0][1], Tensor):
            yield from ((f"{name}/{part}", value) for part, value in parts if isinstance(value, Tensor))
            return
    raise LaunchError(
        f"the quantised tensor {name} is a {type(tensor).__name__} that holds no data the recorder knows."
    )


@dataclass(eq=False, slots=True)
class OwnedShard:
    """The part of one parameter that this rank's distributed optimizer owns.

    ``start`` and ``end`` are positions in the flattened parameter. ``shard``: that part of the parameter, in its dtype;
    ``main``: the float32 copy that the optimizer updates (``shard`` itself where the parameter is float32).
    """

    parameter: Tensor
    start: int
    end: int
    shard: Tensor
    main: Tensor
    optimizer: Any
    _gradient: tuple[Tensor, int, Tensor] | None = field(default=None, init=False, repr=False)

    @property
    def state(self) -> Mapping[str, Any]:
        """The optimizer's tensors and numbers for this part; empty before the first step."""
        state: Mapping[str, Any] = self.optimizer.state.get(self.main, {})
        return state

    @property
    def gradient(self) -> Tensor:
        """The reduced gradient of this part, as the optimizer is about to read it."""
        whole: Tensor = self.parameter.main_grad  # type: ignore[attr-defined]
        known = self._gradient
        if known is None or known[0] is not whole or known[1] != whole.data_ptr():
            known = self._gradient = whole, whole.data_ptr(), whole.view(-1)[self.start : self.end]
        return known[2]


def inner_optimizers(optimizer: Any) -> list[Any]:
    """The distributed optimizers that a chained optimizer consists of; ``LaunchError`` for any other kind."""
    distributed = require("megatron.core.optimizer.distrib_optimizer", "DistributedOptimizer")
    inner = [one for one in getattr(optimizer, "chained_optimizers", [optimizer]) if not one.is_stub_optimizer]
    for one in inner:
        if not isinstance(one, distributed):
            raise LaunchError(
                f"the optimizer is {type(one).__name__}, which the recorder cannot read; "
                "add --use-distributed-optimizer to the pipeline's arguments."
            )
    return inner


def owned_shards(optimizer: Any) -> Iterator[OwnedShard]:
    """Every parameter shard that this rank owns, in the optimizer's own order."""
    for one in inner_optimizers(optimizer):
        half = zip(one.model_float16_groups, one.shard_float16_groups, one.shard_fp32_from_float16_groups, strict=True)
        full = zip(one.model_fp32_groups, one.shard_fp32_groups, one.shard_fp32_groups, strict=True)
        for parameters, shards, mains in (*half, *full):
            for parameter, shard, main in zip(parameters, shards, mains, strict=True):
                span = one._get_model_param_range_map(parameter)["param"]
                yield OwnedShard(parameter, span.start, span.end, shard, main, one.optimizer)
