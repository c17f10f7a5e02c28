"""Which of a host's devices each of several launches side by side gets; a host that has too few is refused."""

from __future__ import annotations

import os
from collections.abc import Mapping

from validator.environment import observe_host
from validator.errors import UsageError


def shares(device: str, ranks: int, launches: int, place: str) -> tuple[tuple[str, ...], ...]:
    """The GPUs of each launch as CUDA_VISIBLE_DEVICES names them; on a CPU nothing is shared out, and each is empty.

    A CPU launch needs one core for each of its ``ranks``: with fewer, launches side by side take longer than one after
    the other. Raises ``UsageError`` where this machine has too few for ``launches`` at once.
    """
    here = visible_gpus() if device == "cuda" else available_cores()
    needed, found = ranks * launches, len(here)
    if needed > found:
        what = "GPUs" if device == "cuda" else "CPU cores"
        most = found // ranks
        accepted = f"accepted is at most --parallel {most}" if most > 1 else "leave it out"
        each = f"{ranks} rank{'s' if ranks > 1 else ''}"
        raise UsageError(
            f"--parallel {launches} needs {needed} {what} for launches of {each} each, and {place} has {found}; "
            f"{accepted}."
        )
    if device != "cuda":
        return ((),) * launches
    return tuple(here[start : start + ranks] for start in range(0, needed, ranks))


def available_cores() -> tuple[str, ...]:
    """The cores that this process may use."""
    return tuple(map(str, sorted(os.sched_getaffinity(0))))


def visible_gpus(caller: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The GPUs that a launch may use, as CUDA_VISIBLE_DEVICES names them; all of the host's where it is not set."""
    told = caller.get("CUDA_VISIBLE_DEVICES")
    if told is not None:
        return tuple(name.strip() for name in told.split(",") if name.strip())
    return tuple(str(index) for index in range(len(observe_host().gpus)))
