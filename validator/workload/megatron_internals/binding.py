"""What has to differ from stock before ``pretrain`` runs."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from validator.workload.megatron_internals.versions import require


def prepare(device: str, on_device: Callable[[], AbstractContextManager[None]] | None, spec: str) -> None:
    """Bind what has to differ from stock before ``pretrain`` runs.

    On every device: the data helper ships compiled, and the wheel has no Makefile to compile it with. With the
    reference layers: Adam and the final norm are ours, of plain PyTorch. On the CPU also: CUDA is not asked for, and
    the device's generator takes part in model building and training steps.
    """
    require("megatron.training.determinism", "apply_determinism_to_args")  # --deterministic-mode sets all by itself
    require("megatron.training.initialize", "_compile_dependencies")
    initialize = importlib.import_module("megatron.training.initialize")
    initialize._compile_dependencies = lambda: None  # type: ignore[attr-defined]
    if spec == "reference":
        _bind_optimizer()
        _bind_final_norm()
    if device != "cpu":
        return
    assert on_device is not None
    _bind_cpu_generator()

    original_initialize = require("megatron.training.training", "initialize_megatron")
    training = importlib.import_module("megatron.training.training")

    def initialize_without_cuda(*args: Any, **kwargs: Any) -> Any:
        return original_initialize(*args, **{**kwargs, "allow_no_cuda": True})

    training.initialize_megatron = initialize_without_cuda  # type: ignore[attr-defined]
    for name in ("setup_model_and_optimizer", "train_step"):
        setattr(training, name, _within(on_device, require("megatron.training.training", name)))


def _within(context: Callable[[], AbstractContextManager[None]], function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return call


def _bind_cpu_generator() -> None:
    """``_set_cuda_rng_state`` goes through a queue that without CUDA is never worked off: every set would be lost."""
    require("megatron.core.tensor_parallel.random", "_set_cuda_rng_state")
    random = importlib.import_module("megatron.core.tensor_parallel.random")

    def set_state(new_state: Tensor, device: int = -1, graph_safe: bool = False) -> None:
        torch.cuda.set_rng_state(new_state)

    random._set_cuda_rng_state = set_state  # type: ignore[attr-defined]


def _bind_optimizer() -> None:
    """Put our Adam where Transformer Engine's or Apex's would be, so that Megatron takes their path through
    checkpoints.
    """
    from validator.workload.adam import Adam

    require("megatron.core.optimizer", "USING_PYTORCH_OPTIMIZER")
    require("megatron.core.optimizer.distrib_optimizer", "HAVE_APEX_OR_TE")
    optimizer = importlib.import_module("megatron.core.optimizer")
    distributed = importlib.import_module("megatron.core.optimizer.distrib_optimizer")
    optimizer.Adam = Adam  # type: ignore[attr-defined]
    optimizer.USING_PYTORCH_OPTIMIZER = False  # type: ignore[attr-defined]
    distributed.Adam = Adam  # type: ignore[attr-defined]
    distributed.HAVE_APEX_OR_TE = True  # type: ignore[attr-defined]
    distributed.USING_APEX_OPTIMIZER = True  # type: ignore[attr-defined]


def _bind_final_norm() -> None:
    """The hybrid stack builds its last norm from Transformer Engine by name."""
    from validator.workload.norm import RMSNorm

    require("megatron.core.models.hybrid.hybrid_block", "TENorm")
    block = importlib.import_module("megatron.core.models.hybrid.hybrid_block")
    block.TENorm = RMSNorm  # type: ignore[attr-defined]
