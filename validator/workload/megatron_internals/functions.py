"""Functions that work outside of modules, found and replaced wherever they are held."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

#: Functions of Megatron and of the workload that compute outside of any module. What a version lacks is left out.
_FUNCTIONS = (
    ("validator.workload.step", "loss_function"),
    ("megatron.core.distributed.finalize_model_grads", "_update_router_expert_bias"),
    ("megatron.core.optimizer.clip_grads", "get_grad_norm_fp32"),
    ("megatron.core.optimizer.clip_grads", "clip_grad_by_total_norm_fp32"),
)


def functions_outside_modules() -> Iterator[Callable[..., Any]]:
    """What a training step calls to compute with tensors where no module's forward or backward pass does."""
    for module, name in _FUNCTIONS:
        function = getattr(importlib.import_module(module), name, None)
        if function is not None:
            yield function


def replace_finalizer(
    modules: list[torch.nn.Module], observed: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[[], None]:
    """Put ``observed`` around the function that reduces the gradients of all micro-batches, which the models'
    configuration holds; returns what takes it away.
    """
    configurations = {id(config): config for module in modules if (config := getattr(module, "config", None))}
    kept = []
    for config in configurations.values():
        if (function := getattr(config, "finalize_model_grads_func", None)) is not None:
            kept.append((config, function))
            config.finalize_model_grads_func = observed(function)

    def undo() -> None:
        for config, function in kept:
            config.finalize_model_grads_func = function

    return undo


def replace_everywhere(function: Callable[..., Any], other: Callable[..., Any]) -> Callable[[], None]:
    """Bind every name that Megatron, Transformer Engine, the workload and ``torch.distributed`` have for ``function``
    to ``other``; returns what binds them back.

    Megatron keeps many of these functions under names of its own, from when its modules were imported.
    """
    changed: list[tuple[Any, str]] = []
    # PyTorch compares a message's function with its own by identity.
    messages = {"torch.distributed.distributed_c10d"} if function.__name__ in ("isend", "irecv") else set()
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if (
            package in ("megatron", "transformer_engine")
            or name in {"torch.distributed", *messages}
            or (name.startswith("validator.workload.") and not name.startswith("validator.workload.trace"))
        ):
            names = [key for key, value in list(getattr(module, "__dict__", {}).items()) if value is function]
            changed += [(module, key) for key in names]
    for module, key in changed:
        setattr(module, key, other)

    def undo() -> None:
        for module, key in changed:
            if getattr(module, key, None) is other:
                setattr(module, key, function)

    return undo
