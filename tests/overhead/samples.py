"""Timings that tests start from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from validator.overhead.arms import Arm
from validator.overhead.timings import LaunchTiming
from validator.pipeline import Computation, Corpus, Device, Spec

COMPUTATION = Computation(
    device=Device.CPU,
    nodes=1,
    ranks=2,
    steps=10,
    seed=1234,
    spec=Spec.REFERENCE,
    data=Corpus(20, 64, 7),
    arguments=("--hidden-size", "64", "--bf16", "--recompute-granularity", "full"),
    variables={"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "OTHER": "1"},
)


def timing(arm: str, seconds: float, steps: int = 5, **changes: Any) -> LaunchTiming:
    """A launch whose every step took ``seconds``."""
    values: dict[str, Any] = {
        "tokens_per_step": 512, "peak_memory_bytes": 2**29, "other_cores": 0.0, "stolen_cores": 0.0,
        "load_average": 1.0, "gpu": None, "torch": {"threads": 1},
    }  # fmt: skip
    return LaunchTiming(arm, (seconds,) * steps, **{**values, **changes})


@dataclass
class RecordedLaunches:
    """Launches that take the next of given step times, arm by arm; notes the order in which they were asked for."""

    seconds: dict[str, list[float]]
    asked: list[str] = field(default_factory=list)

    def time(self, arm: Arm, number: int, total: int) -> LaunchTiming:
        self.asked.append(arm.name)
        return timing(arm.name, self.seconds[arm.name][number - 1])

    def profile(self, arm: Arm, total: int) -> list[dict[str, Any]]:
        self.asked.append(f"profile {arm.name}")
        step = {"forward": 0.1, "backward": 0.2, "optimizer": 0.01, "communication": 0.05, "data": 0.0, "step": 0.4}
        return [{"rank": 0, "phases": [step] * 6, "operators": {"aten::mm": {"seconds": 0.1, "calls": 2}}}]
