"""The CPU in the role of the CUDA device.

Megatron asks for CUDA tensors, streams, events and generators by name. Here a tensor "on CUDA" is a CPU tensor,
streams do nothing, and the device's generator is a state of its own beside the CPU's (see ``generators``), as on a GPU.
"""

from __future__ import annotations

import contextlib
import os
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from validator.workload.cpu import generators

_TYPE_NAMES = {
    torch.float32: "torch.cuda.FloatTensor",
    torch.float64: "torch.cuda.DoubleTensor",
    torch.float16: "torch.cuda.HalfTensor",
    torch.bfloat16: "torch.cuda.BFloat16Tensor",
    torch.int64: "torch.cuda.LongTensor",
    torch.int32: "torch.cuda.IntTensor",
    torch.uint8: "torch.cuda.ByteTensor",
    torch.bool: "torch.cuda.BoolTensor",
}

_CPU = torch.device("cpu")


def _is_device(value: Any) -> bool:
    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and value.startswith("cuda")


class _CpuAsCuda(TorchFunctionMode):
    """Maps ``device="cuda"`` (also as index or object) to the CPU in every call of PyTorch's."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.type and len(args) == 1 and not kwargs:
            return _TYPE_NAMES.get(args[0].dtype, "torch.cuda.Tensor")
        if func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.Tensor.cpu:
            return args[0].clone()
        device = kwargs.get("device")
        if device is not None and (_is_device(device) or type(device) is int):
            kwargs = {**kwargs, "device": _CPU}
        if func is torch.Tensor.to and any(_is_device(value) for value in args[1:]):
            args = tuple(_CPU if _is_device(value) else value for value in args)
        result = func(*args, **kwargs)
        if func is torch.Tensor.to and result is args[0] and _goes_to_host(args, kwargs, device):
            return result.clone()
        return result


def _goes_to_host(args: Any, kwargs: Any, device: Any) -> bool:
    """Whether a ``Tensor.to`` asks for the host, which from a device is always a copy: what follows may rely on it."""
    asked = args[1] if len(args) > 1 else device
    return asked == "cpu" or (isinstance(asked, torch.device) and asked.type == "cpu" and asked is not _CPU)


class _Stream:
    """A stream on which everything is already done."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = _CPU
        self.cuda_stream = 0

    def wait_stream(self, _: Any) -> None:
        pass

    def wait_event(self, _: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event or _Event()


class _Event:
    """An event that has already happened."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        pass

    def wait(self, *_: Any) -> None:
        pass

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, _: Any) -> float:
        return 0.0


def _properties(*_: Any) -> SimpleNamespace:
    return SimpleNamespace(name="cpu", major=8, minor=0, total_memory=0, multi_processor_count=1)


def _all_to_all_with_list_sizes(original: Any) -> Any:
    """Gloo wants split sizes as lists of int; Megatron hands over CPU tensors where nothing is on CUDA."""

    def as_list(sizes: Any) -> Any:
        return sizes.tolist() if isinstance(sizes, torch.Tensor) else sizes

    def all_to_all_single(
        output: Any,
        input: Any,
        output_split_sizes: Any = None,
        input_split_sizes: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        return original(output, input, as_list(output_split_sizes), as_list(input_split_sizes), *args, **kwargs)

    return all_to_all_single


def install() -> None:
    """Put the CPU in the CUDA device's place for this process."""
    _CpuAsCuda().__enter__()

    cuda = torch.cuda
    stream = _Stream()
    zero_bytes = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached")
    for name in zero_bytes:
        setattr(cuda, name, lambda *_, **__: 0)
    nothing = ("set_device", "set_stream", "synchronize", "empty_cache", "reset_peak_memory_stats", "ipc_collect")
    for name in nothing:
        setattr(cuda, name, lambda *_, **__: None)
    cuda.current_device = lambda: int(os.environ.get("LOCAL_RANK", "0"))
    cuda.device_count = lambda: int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    cuda.Stream = _Stream  # type: ignore[misc, assignment]
    cuda.Event = _Event  # type: ignore[misc, assignment]
    cuda.current_stream = lambda *_, **__: stream  # type: ignore[assignment, return-value]
    cuda.default_stream = lambda *_, **__: stream  # type: ignore[assignment, return-value]
    cuda.stream = lambda *_, **__: contextlib.nullcontext()  # type: ignore[assignment, return-value]
    cuda.memory_stats = lambda *_, **__: {}  # type: ignore[assignment]
    cuda.get_device_capability = lambda *_, **__: (8, 0)
    cuda.get_device_properties = _properties  # type: ignore[assignment]
    cuda.get_device_name = lambda *_, **__: "cpu"

    distributed = torch.distributed
    distributed.all_to_all_single = _all_to_all_with_list_sizes(distributed.all_to_all_single)
    generators.install()
