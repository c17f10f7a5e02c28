"""Tells a hardware fault from a software change: counts of memory errors before and after a launch on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from validator.environment.nvml import GpuDevice, memory_errors_between, read_devices
from validator.errors import LaunchError


@contextmanager
def no_memory_errors(device: str, read: Callable[[], tuple[GpuDevice, ...]] = read_devices) -> Iterator[None]:
    """Raise ``LaunchError`` where a GPU of this machine counted memory errors within, also for a launch that failed.

    Nothing is looked at for launches on another ``device`` than ``cuda``, or where NVML does not answer.
    """
    if device != "cuda":
        yield
        return
    before = read()
    failed: LaunchError | None = None
    try:
        yield
    except LaunchError as error:
        failed = error
    moved = memory_errors_between(before, read())
    if moved:
        also = f" The launch itself failed as well: {failed}" if failed is not None else ""
        raise LaunchError(
            f"Hardware fault: {moved} during the launch, so its bits say nothing about the software; look after this "
            f"machine.{also}"
        ) from failed
    if failed is not None:
        raise failed
