"""Random number generators: PyTorch's and Megatron's named ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from validator.workload.megatron_internals.versions import require


def random_tracker_states() -> Mapping[str, Tensor]:
    """States of Megatron's named generators (``model-parallel-rng``, ``expert-parallel-rng``, …)."""
    states: Mapping[str, Tensor] = require(
        "megatron.core.tensor_parallel.random", "get_cuda_rng_tracker"
    )().get_states()
    return states


def set_random_tracker_states(states: Mapping[str, Tensor]) -> None:
    """Set Megatron's named generators to states that ``random_tracker_states`` gave."""
    tracker = require("megatron.core.tensor_parallel.random", "get_cuda_rng_tracker")()
    tracker.set_states({name: state.clone() for name, state in states.items()})


def generator_states() -> dict[str, Any]:
    """PyTorch's CPU and device generators and Megatron's named ones, as ``set_generator_states`` takes them."""
    named = {name: state.clone() for name, state in random_tracker_states().items()}
    return {"cpu": torch.get_rng_state(), "device": torch.cuda.get_rng_state(), "named": named}


def set_generator_states(states: Mapping[str, Any]) -> None:
    """Set the generators to states that ``generator_states`` gave."""
    torch.set_rng_state(states["cpu"])
    torch.cuda.set_rng_state(states["device"])
    set_random_tracker_states(states["named"])
