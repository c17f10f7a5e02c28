"""Random number generators: PyTorch's and Megatron's named ones.

A named generator is kept as a state (a tensor, whose size is the device's: 16 bytes on a GPU), or, with graph-safe
random numbers, as a generator of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from validator.workload.megatron_internals.versions import require

type State = Tensor | torch.Generator


def random_tracker_states() -> Mapping[str, State]:
    """Megatron's named generators (``model-parallel-rng``, ``expert-parallel-rng``, …), as they are kept."""
    states: Mapping[str, State] = _tracker().get_states()
    return states


def state_tensor(state: State) -> Tensor:
    """The state of a named generator, however it is kept."""
    return state if isinstance(state, Tensor) else state.get_state()


def set_random_tracker_states(states: Mapping[str, State]) -> None:
    """Set Megatron's named generators to ``states``, each of which may be kept in either way; they are copied."""
    kept = random_tracker_states()
    _tracker().set_states({name: _copy(state, kept.get(name)) for name, state in states.items()})


def generator_states() -> dict[str, Any]:
    """PyTorch's CPU and device generators and Megatron's named ones, as ``set_generator_states`` takes them."""
    named = {name: _copy(state) for name, state in random_tracker_states().items()}
    return {"cpu": torch.get_rng_state(), "device": torch.cuda.get_rng_state(), "named": named}


def set_generator_states(states: Mapping[str, Any]) -> None:
    """Set the generators to states that ``generator_states`` gave."""
    torch.set_rng_state(states["cpu"])
    torch.cuda.set_rng_state(states["device"])
    set_random_tracker_states(states["named"])


def _tracker() -> Any:
    return require("megatron.core.tensor_parallel.random", "get_cuda_rng_tracker")()


def _copy(state: State, kept: State | None = None) -> State:
    """The state anew, as a generator where ``kept`` or it itself is one."""
    if isinstance(kept, torch.Generator):
        copy = kept.clone_state()
        copy.set_state(state_tensor(state))
        return copy
    return state.clone() if isinstance(state, Tensor) else state.clone_state()
