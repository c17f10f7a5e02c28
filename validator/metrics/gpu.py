"""What an overhead record says of the GPU on which it was measured, as samples. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from typing import Any

from validator.environment.nvml import THROTTLING
from validator.metrics.families import Sample
from validator.overhead.gpu import held_back

_MEGAHERTZ = 1e6


def gpu_samples(record: Mapping[str, Any]) -> Iterator[Sample]:
    """Clocks, temperature, power, what held the clocks back, and memory errors; nothing for a measurement on a CPU."""
    key = {"pipeline": record["pipeline"], "hardware_class": record["hardware_class"]}
    states = {arm["name"]: [one["gpu"] for one in arm["launches"] if one["gpu"]] for arm in record["arms"]}
    everything = [state for arm in states.values() for state in arm]
    if not everything:
        return
    for arm, seen in states.items():
        own = {**key, "arm": arm}
        for clock in _values(seen, "sm_clock_mhz", statistics.median):
            yield Sample("validator_gpu_sm_clock_hertz", own, clock * _MEGAHERTZ)
        for temperature in _values(seen, "temperature_celsius", max):
            yield Sample("validator_gpu_temperature_celsius", own, temperature)
        for power in _values(seen, "power_watts", statistics.median):
            yield Sample("validator_gpu_power_watts", own, power)
    for clock in _values(everything, "sm_clock_max_mhz", max):
        yield Sample("validator_gpu_sm_clock_max_hertz", key, clock * _MEGAHERTZ)
    for power in _values(everything, "power_limit_watts", max):
        yield Sample("validator_gpu_power_limit_watts", key, power)
    for reason in THROTTLING.values():
        held = sum(reason in held_back(state) for state in everything)
        yield Sample("validator_gpu_held_back_launches", {**key, "reason": reason}, float(held))
    for kind in ("corrected", "uncorrected"):
        for errors in _values(everything, f"{kind}_memory_errors", max):
            yield Sample("validator_gpu_memory_errors", {**key, "kind": kind}, errors)


def _values(states: list[Mapping[str, Any]], name: str, of: Any) -> Iterator[float]:
    """``of`` all answers to a question; nothing where there is none."""
    found = [float(state[name]) for state in states if name in state]
    if found:
        yield float(of(found))
