"""The metrics that the validator exports: their names, what they mean, and their labels, in one place.

Gauges and timestamps only, since a Pushgateway aggregates nothing; base units (seconds, bytes, ratios), as Prometheus'
conventions want them. Every label has few values: pipelines, hardware classes and gates of a project, never a commit,
a path or a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

KEY = ("pipeline", "hardware_class")


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: ``labels`` are those beyond pipeline and hardware class."""

    name: str
    help: str
    labels: tuple[str, ...] = ()


_CHECK = (
    Family("validator_check_verdict", "1 for the verdict of the last check, 0 for every other.", ("verdict",)),
    Family("validator_check_timestamp_seconds", "Unix time at which the last check ended."),
    Family("validator_check_last_success_timestamp_seconds", "Unix time at which a check last ended with status 0."),
    Family("validator_check_duration_seconds", "Wall clock of the last check."),
    Family("validator_check_errors", "Gates of the last check that could not be answered.", ("kind",)),
    Family("validator_launch_duration_seconds", "Longest launch of each part of the last check.", ("launch",)),
    Family("validator_gate_outcome", "1 for the gate's outcome in the last check, else 0.", ("gate", "outcome")),
    Family("validator_gate_required", "1 where the gate decides the verdict, 0 where it is advisory.", ("gate",)),
    Family("validator_gate_duration_seconds", "Wall clock of the gate in the last check.", ("gate",)),
    Family("validator_first_divergent_step", "First step with other bits in the last check; NaN for none."),
    Family("validator_selftest_caught_ratio", "Effective faults of the catalogue that the self-test caught."),
    Family("validator_selftest_named_ratio", "Effective faults that were caught and named by their place."),
    Family("validator_selftest_effective_faults", "Faults of the last self-test that changed any bit."),
    Family("validator_selftest_timestamp_seconds", "Unix time at which the last self-test ended."),
)
_OVERHEAD = (
    Family("validator_overhead_ratio", "Step time of deterministic mode over the fastest default mode, minus 1."),
    Family("validator_overhead_lower_ratio", "Lower bound of the overhead's 95 % interval."),
    Family("validator_overhead_upper_ratio", "Upper bound of the overhead's 95 % interval."),
    Family("validator_overhead_budget_ratio", "Overhead that the pipeline's policy allows."),
    Family("validator_overhead_noise_floor_ratio", "Least overhead that the measured pairs can tell from none."),
    Family("validator_overhead_pairs", "Pairs of launches behind the overhead."),
    Family("validator_overhead_timestamp_seconds", "Unix time at which the overhead was measured."),
    Family("validator_step_time_seconds", "Median step time of an arm of the overhead measurement.", ("arm",)),
    Family("validator_tokens_per_second", "Tokens that an arm trains in a second.", ("arm",)),
    Family("validator_peak_memory_bytes", "Most memory that one rank of an arm held.", ("arm",)),
    Family("validator_phase_time_seconds", "Time of a step in a phase, from profiled launches.", ("arm", "phase")),
)
_GPU = (
    Family("validator_gpu_sm_clock_hertz", "Median clock of rank 0's GPU at the end of an arm's launches.", ("arm",)),
    Family("validator_gpu_sm_clock_max_hertz", "Highest clock that the GPU may run at."),
    Family("validator_gpu_temperature_celsius", "Highest temperature at the end of an arm's launches.", ("arm",)),
    Family("validator_gpu_power_watts", "Median power at the end of an arm's launches.", ("arm",)),
    Family("validator_gpu_power_limit_watts", "Power that the GPU may take."),
    Family("validator_gpu_held_back_launches", "Timed launches at whose end the clocks were held back.", ("reason",)),
    Family("validator_gpu_memory_errors", "Memory errors (ECC) since the driver was loaded.", ("kind",)),
)
_PROJECT = (
    Family("validator_golden_recorded_timestamp_seconds", "Unix time of the day on which the golden was recorded."),
    Family("validator_waivers", "Waivers of the pipeline's policy, by gate.", ("gate",)),
    Family("validator_waiver_expiry_timestamp_seconds", "Unix time at which a gate's next waiver expires.", ("gate",)),
)
FAMILIES = {family.name: family for family in (*_CHECK, *_OVERHEAD, *_GPU, *_PROJECT)}


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a metric. ``labels`` has the pipeline, the hardware class, and the family's own."""

    name: str
    labels: Mapping[str, str]
    value: float

    def __post_init__(self) -> None:
        expected = {*KEY, *FAMILIES[self.name].labels}
        if set(self.labels) != expected:
            raise ValueError(f"{self.name} has labels {sorted(self.labels)}; expected are {sorted(expected)}")

    @property
    def key(self) -> tuple[str, str]:
        """Pipeline and hardware class."""
        return self.labels["pipeline"], self.labels["hardware_class"]


def by_family(samples: Iterable[Sample]) -> Iterator[tuple[Family, list[Sample]]]:
    """Samples family by family, in the order of the table; of samples with equal labels the last one counts."""
    chosen: dict[str, dict[tuple[tuple[str, str], ...], Sample]] = {}
    for sample in samples:
        chosen.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample
    for name, family in FAMILIES.items():
        if name in chosen:
            yield family, list(chosen[name].values())
