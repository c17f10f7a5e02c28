"""Tells a hardware fault from a software change: counts of memory errors before and after a launch on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from validator.environment.nvml import GpuDevice, memory_errors_between, read_devices
from validator.errors import LaunchError


@runtime_checkable
class CountsElsewhere(Protocol):
    """An executor whose launches run on other machines, which count what their GPUs do themselves."""

    def memory_errors(self, folder: Path) -> Mapping[str, str]:
        """What the GPUs counted during the launch in ``folder``, by machine; empty where none did."""
        ...


@contextmanager
def no_memory_errors(
    device: str,
    read: Callable[[], tuple[GpuDevice, ...]] = read_devices,
    *,
    executor: object = None,
    folder: Path = Path(),
) -> Iterator[None]:
    """Raise ``LaunchError`` where a GPU counted memory errors within, also for a launch that failed.

    This machine's GPUs are looked at, or, where ``executor`` launches on others, those of the launch in ``folder``.
    Nothing is looked at for launches on another ``device`` than ``cuda``, or where NVML does not answer.
    """
    if device != "cuda":
        yield
        return
    before = () if isinstance(executor, CountsElsewhere) else read()
    failed: LaunchError | None = None
    try:
        yield
    except LaunchError as error:
        failed = error
    if isinstance(executor, CountsElsewhere):
        counted = executor.memory_errors(folder)
        moved = "; ".join(f"{words} on {machine}" for machine, words in counted.items())
        machines = " and ".join(counted)
    else:
        moved, machines = memory_errors_between(before, read()), "this machine"
    if moved:
        also = f" The launch itself failed as well: {failed}" if failed is not None else ""
        raise LaunchError(
            f"Hardware fault: {moved} during the launch, so its bits say nothing about the software; look after "
            f"{machines}.{also}"
        ) from failed
    if failed is not None:
        raise failed
