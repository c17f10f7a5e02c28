"""What one launch may use at most, where something can hold it to that: a container, a job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Of one launch, all ranks of a node together.

    ``memory_gibibytes`` is ``None`` for three quarters of the machine's; shared memory (``/dev/shm``) and the scratch
    folder (``/tmp``) count towards it. ``disk_gibibytes`` bounds everything that a launch writes, checkpoints and data
    included. ``locked_memory`` asks for unlimited locked memory, which RDMA needs and some hosts refuse.
    """

    memory_gibibytes: int | None = None
    shared_memory_gibibytes: int = 2
    scratch_gibibytes: int = 2
    disk_gibibytes: int = 16
    processes: int = 4096
    locked_memory: bool = False
