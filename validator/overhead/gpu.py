"""What rank 0's GPU did at the end of a timed launch, as nvidia-smi told the launch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from validator.environment.nvml import throttling

#: Numbers of a GPU's state: clocks in MHz, temperature in degrees Celsius, power in W, and memory errors (ECC) since
#: the driver was loaded.
NUMBERS = (
    "sm_clock_mhz", "sm_clock_max_mhz", "temperature_celsius", "power_watts", "power_limit_watts",
    "corrected_memory_errors", "uncorrected_memory_errors",
)  # fmt: skip

#: NVML's mask of throttle reasons, and whether the GPU is cut into instances: texts.
TEXTS = ("throttle_reasons", "mig")


def gpu_state(content: object) -> dict[str, float | str] | None:
    """The state that a rank wrote, known names only; a question that nvidia-smi did not answer is left out.

    Raises ``ValueError`` for what is no state: the launch, and so what it wrote, is not trusted.
    """
    if content is None:
        return None
    if not isinstance(content, Mapping):
        raise ValueError(f"the GPU's state is a {type(content).__name__}")
    numbers = {name: content[name] for name in NUMBERS if isinstance(content.get(name), int | float)}
    texts = {name: content[name] for name in TEXTS if isinstance(content.get(name), str) and len(content[name]) <= 32}
    return {**{name: float(value) for name, value in numbers.items() if math.isfinite(value)}, **texts}


def held_back(state: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What held the GPU's clocks back; empty where nothing did, or nothing is known."""
    try:
        return throttling(int(str((state or {})["throttle_reasons"]), base=16))
    except (KeyError, ValueError):
        return ()
