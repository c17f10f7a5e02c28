"""A clock around the steps of one rank, in a launch that records no fingerprints.

A step's time is that from one entry into ``train_step`` to the next, so that data loading and logging count, as they do
in a long run. The device is synchronised at each entry.
"""

from __future__ import annotations

import os
import resource
import subprocess
import time
from typing import Any

import torch

from validator.execute.request import LaunchRequest
from validator.workload import claims, megatron_internals

_TICKS = os.sysconf("SC_CLK_TCK")

#: What holds the clocks back, by the names that drivers have for it, the newest first. A name that nvidia-smi does not
#: know makes it refuse the whole question.
_HELD_BACK = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")

#: What nvidia-smi is asked for beside that, and the name each answer gets.
_GPU_QUESTIONS = {
    "clocks.sm": "sm_clock_mhz",
    "clocks.max.sm": "sm_clock_max_mhz",
    "temperature.gpu": "temperature_celsius",
    "power.draw": "power_watts",
    "power.limit": "power_limit_watts",
    "mig.mode.current": "mig",
    "ecc.errors.corrected.volatile.total": "corrected_memory_errors",
    "ecc.errors.uncorrected.volatile.total": "uncorrected_memory_errors",
}


class StepClock:
    """Notes the time at each entry into ``train_step``; ``slowdown`` sleeps that share of each step on top of it."""

    def __init__(self, request: LaunchRequest, args: Any, rank: int) -> None:
        self.request = request
        self._args = args
        self._rank = rank
        self._slowdown = float(request.switches.get("slowdown", 0.0))
        self._entries: list[float] = []
        self._host_before = (0.0, 0.0, 0.0)

    def before_step(self, _: int) -> None:
        """The loop is about to enter ``train_step``."""
        torch.cuda.synchronize()
        if self._slowdown and self._entries:
            time.sleep(self._slowdown * (time.perf_counter() - self._entries[-1]))
        self._entries.append(time.perf_counter())
        if len(self._entries) == 2:
            self._host_before = host_counters()

    def on_end(self) -> None:
        """The loop has ended; the last step has no next entry and does not count."""
        window = time.perf_counter() - self._entries[1]
        busy, steal, own = (after - before for after, before in zip(host_counters(), self._host_before, strict=True))
        steps = [later - earlier for earlier, later in zip(self._entries, self._entries[1:], strict=False)]
        self.request.write_measurement(
            self._rank,
            {
                "rank": self._rank,
                "steps": steps,
                "tokens_per_step": megatron_internals.global_batch_size() * int(self._args.seq_length),
                "peak_memory_bytes": peak_memory_bytes(self.request.device),
                "window_seconds": window,
                "busy_seconds": busy,
                "steal_seconds": steal,
                "own_seconds": own,
                "load_average": os.getloadavg()[0],
                "torch": claims.torch_settings(),
                "gpu": gpu_state() if self.request.device == "cuda" else None,
            },
        )


def install(request: LaunchRequest, args: Any, rank: int) -> None:
    """Time every step of this rank."""
    clock = StepClock(request, args, rank)
    megatron_internals.observe_training(megatron_internals.Hooks(before_step=clock.before_step, on_end=clock.on_end))


def host_counters() -> tuple[float, float, float]:
    """CPU seconds so far: of all processes of the host, stolen by a hypervisor, of this process."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = map(int, file.readline().split()[1:9])
    times = os.times()
    return (user + nice + system + irq + softirq) / _TICKS, steal / _TICKS, times.user + times.system


def peak_memory_bytes(device: str) -> int:
    """The most memory that this process held: on the device for CUDA, resident for the CPU."""
    if device == "cuda":
        return int(torch.cuda.max_memory_reserved())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def gpu_state() -> dict[str, Any] | None:
    """Clocks (MHz), temperature (degrees Celsius), power (W), throttle reasons, and memory errors since the driver was
    loaded, of this rank's GPU right now.

    ``None`` where nvidia-smi does not answer.
    """
    try:
        identity = str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid).removeprefix("GPU-")
        for name in _HELD_BACK:
            answers = _asked(identity, [*_GPU_QUESTIONS, name])
            if answers is not None:
                return dict(zip([*_GPU_QUESTIONS.values(), "throttle_reasons"], map(_number, answers), strict=False))
    except (OSError, subprocess.SubprocessError, AttributeError, RuntimeError):
        pass
    return None


def _asked(identity: str, questions: list[str]) -> list[str] | None:
    """What nvidia-smi answers about one GPU, ``None`` where it refuses a question."""
    done = subprocess.run(
        [
            "nvidia-smi", f"--id=GPU-{identity}", f"--query-gpu={','.join(questions)}",
            "--format=csv,noheader,nounits",
        ],
        capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    return None if done.returncode else [answer.strip() for answer in done.stdout.split(",")]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
