"""What a measured launch leaves behind, read from its ranks' files."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from validator.errors import LaunchError
from validator.execute.request import LaunchRequest
from validator.overhead.gpu import gpu_state
from validator.report.text import brief

#: Seconds: the least that a record tells from nothing, and more than any launch takes.
SHORTEST, LONGEST = 1e-6, 1e9

#: More tokens, bytes or waiting processes than any launch has, and more settings than PyTorch has.
_MOST, _SETTINGS = 2**53, 100


@dataclass(frozen=True, slots=True)
class LaunchTiming:
    """One timed launch: the seconds of each counted step, on the slowest rank of that step.

    ``tokens_per_step`` counts all ranks; ``peak_memory_bytes`` is that of the rank which held most. ``other_cores`` is
    the mean number of cores that processes outside the launch kept busy while it was timed, ``stolen_cores`` what a
    hypervisor took; ``load_average`` the host's over a minute, at the end. ``gpu`` is what nvidia-smi said at the end
    of rank 0's GPU (``overhead/gpu.py``), ``torch`` PyTorch's settings there.
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
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise LaunchError(f"Rank {rank} left no measurement in {file} ({type(error).__name__}).") from error
        ranks.append(content)
    return ranks


def take_timing(arm: str, ranks: Sequence[Mapping[str, Any]], warmup: int, timed: int) -> LaunchTiming:
    """The timing of one launch from what its ranks wrote. Raises ``LaunchError`` where steps are missing or not
    positive, or another value is none that a launch measures.
    """
    try:
        by_rank = [[number(value, SHORTEST, LONGEST) for value in _counted(rank, warmup, timed)] for rank in ranks]
        steps = tuple(max(values) for values in zip(*by_rank, strict=True))
        if len(steps) != timed:
            raise ValueError(f"{len(steps)} of {timed} steps")
        first = ranks[0]
        window = number(first["window_seconds"], SHORTEST, LONGEST)
        own = sum(number(rank["own_seconds"], -LONGEST, LONGEST) for rank in ranks)
        return LaunchTiming(
            arm=arm,
            steps=steps,
            tokens_per_step=int(number(first["tokens_per_step"], 0, _MOST)),
            peak_memory_bytes=max(int(number(rank["peak_memory_bytes"], 0, _MOST)) for rank in ranks),
            other_cores=max(0.0, number(first["busy_seconds"], -LONGEST, LONGEST) - own) / window,
            stolen_cores=max(0.0, number(first["steal_seconds"], -LONGEST, LONGEST)) / window,
            load_average=number(first["load_average"], 0, _MOST),
            gpu=gpu_state(first["gpu"]),
            torch=_settings(first["torch"]),
        )
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise LaunchError(f"A timed launch left a measurement that cannot be used ({brief(error)}).") from error


def number(value: object, least: float, most: float) -> float:
    """A number between the two that a launch wrote; ``ValueError`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{brief(repr(value))} is no number from {least:g} to {most:g}")
    return float(value)


def _counted(rank: Mapping[str, Any], warmup: int, timed: int) -> Sequence[object]:
    steps = rank["steps"]
    if not isinstance(steps, list):
        raise TypeError("the steps are no list")
    return steps[warmup : warmup + timed]


def _settings(content: object) -> dict[str, Any]:
    """PyTorch's settings as a rank wrote them, plain values by name; ``ValueError`` for anything else."""
    if not isinstance(content, dict) or len(content) > _SETTINGS:
        raise ValueError("PyTorch's settings are no small mapping")
    return {brief(name): _setting(value) for name, value in content.items()}


def _setting(value: object) -> object:
    if isinstance(value, str):
        return brief(value)
    if value is not None and not isinstance(value, bool):
        number(value, -_MOST, _MOST)
    return value
