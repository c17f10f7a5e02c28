"""Two generators on one CPU: the CPU's own and the device's.

On a GPU, model building and dropout draw from the device's generator while data loading and checkpointing see the
CPU's. PyTorch's one default generator plays both: it holds one state, the other waits in a stash. ``on_device()``
swaps them around the calls that run on the device; reading, seeding and setting either one goes to wherever it is at
that moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_get_default = torch.random.get_rng_state
_set_default = torch.random.set_rng_state
_seed_default = torch.random.manual_seed

_device_is_default = False
_stash: torch.Tensor = _get_default()


def _state_after(seed: int) -> torch.Tensor:
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator.get_state()


def _read(device: bool) -> torch.Tensor:
    return _get_default() if device is _device_is_default else _stash.clone()


def _write(device: bool, state: torch.Tensor) -> None:
    global _stash
    if device is _device_is_default:
        _set_default(state)
    else:
        _stash = state.clone()


@contextmanager
def on_device() -> Iterator[None]:
    """Let PyTorch's default generator be the device's inside this block. Nests."""
    global _device_is_default
    outer = _device_is_default
    _swap_to(True)
    try:
        yield
    finally:
        _swap_to(outer)


def _swap_to(device: bool) -> None:
    global _device_is_default, _stash
    if device is not _device_is_default:
        other = _get_default()
        _set_default(_stash)
        _stash = other
        _device_is_default = device


def install() -> None:
    """Bind PyTorch's generator functions, the CPU's and CUDA's, to the two states."""

    def manual_seed(seed: int) -> torch.Generator:
        _write(False, _state_after(int(seed)))
        _write(True, _state_after(int(seed)))
        return torch.default_generator

    def set_cpu(new_state: torch.Tensor) -> None:
        _write(False, new_state)

    def set_cuda(new_state: torch.Tensor, *_: Any, **__: Any) -> None:
        _write(True, new_state)

    def seed_cuda(seed: int) -> None:
        _write(True, _state_after(int(seed)))

    for module in (torch, torch.random):
        module.manual_seed = manual_seed  # type: ignore[attr-defined]
        module.get_rng_state = lambda: _read(False)  # type: ignore[attr-defined]
        module.set_rng_state = set_cpu  # type: ignore[attr-defined]
    for module in (torch.cuda, torch.cuda.random):
        module.manual_seed = seed_cuda  # type: ignore[attr-defined]
        module.manual_seed_all = seed_cuda  # type: ignore[attr-defined]
        module.get_rng_state = lambda *_, **__: _read(True)  # type: ignore[attr-defined]
        module.set_rng_state = set_cuda  # type: ignore[attr-defined]
