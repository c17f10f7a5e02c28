"""What a measured launch leaves behind, read from its ranks' files."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from validator.errors import LaunchError
from validator.execute.request import LaunchRequest


@dataclass(frozen=True, slots=True)
class LaunchTiming:
    """One timed launch: the seconds of each counted step, on the slowest rank of that step.

    ``tokens_per_step`` counts all ranks; ``peak_memory_bytes`` is that of the rank which held most. ``other_cores`` is
    the mean number of cores that processes outside the launch kept busy while it was timed, ``stolen_cores`` what a
    hypervisor took; ``load_average`` the host's over a minute, at the end. ``gpu`` is what nvidia-smi said at the end
    of rank 0, ``torch`` PyTorch's settings there.
    """

    arm: str
    steps: tuple[float, ...]
    tokens_per_step: int
    peak_memory_bytes: int
    other_cores: float
    stolen_cores: float
    load_average: float
    gpu: Mapping[str, Any] | None
    torch: Mapping[str, Any]

    @property
    def median(self) -> float:
        """Median step time in seconds: the launch's figure."""
        return statistics.median(self.steps)


def read_measured(request: LaunchRequest) -> list[dict[str, Any]]:
    """What every rank of a measured launch wrote. Raises ``LaunchError`` where one left nothing whole."""
    ranks = []
    for rank in range(request.ranks):
        file = request.measurement_file(rank)
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            if not isinstance(content, dict):
                raise TypeError("no mapping")
        except (OSError, ValueError, TypeError) as error:
            raise LaunchError(f"Rank {rank} left no measurement in {file} ({type(error).__name__}).") from error
        ranks.append(content)
    return ranks


def take_timing(arm: str, ranks: Sequence[Mapping[str, Any]], warmup: int, timed: int) -> LaunchTiming:
    """The timing of one launch from what its ranks wrote. Raises ``LaunchError`` where steps are missing or not
    positive.
    """
    try:
        by_rank = [[float(value) for value in rank["steps"]][warmup : warmup + timed] for rank in ranks]
        steps = tuple(max(values) for values in zip(*by_rank, strict=True))
        if len(steps) != timed or min(steps) <= 0:
            raise ValueError(f"{len(steps)} of {timed} steps")
        first = ranks[0]
        window = float(first["window_seconds"])
        own = sum(float(rank["own_seconds"]) for rank in ranks)
        return LaunchTiming(
            arm=arm,
            steps=steps,
            tokens_per_step=int(first["tokens_per_step"]),
            peak_memory_bytes=max(int(rank["peak_memory_bytes"]) for rank in ranks),
            other_cores=max(0.0, float(first["busy_seconds"]) - own) / window,
            stolen_cores=float(first["steal_seconds"]) / window,
            load_average=float(first["load_average"]),
            gpu=first["gpu"],
            torch=first["torch"],
        )
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise LaunchError(f"A timed launch left a measurement that cannot be used ({error}).") from error
