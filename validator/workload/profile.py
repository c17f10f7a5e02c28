"""Where a step's time goes, in a launch of its own: phases by a clock, then operators by PyTorch's profiler.

The profiler slows what it watches, and unevenly, so phases are clocked in steps before it is switched on. The device is
synchronised where a phase begins and ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from validator.execute.request import LaunchRequest
from validator.workload import megatron_internals, step

#: The last steps of a launch run under the profiler.
PROFILED_STEPS = 2

#: Collectives and point-to-point calls of a process group, by the names of PyTorch's own methods.
_COLLECTIVES = (
    "allreduce", "allreduce_coalesced", "allgather", "_allgather_base", "allgather_into_tensor_coalesced",
    "reduce_scatter", "_reduce_scatter_base", "reduce_scatter_tensor_coalesced", "alltoall", "alltoall_base",
    "broadcast", "reduce", "gather", "scatter", "send", "recv", "recv_anysource", "barrier",
)  # fmt: skip


class PhaseClock:
    """Seconds of each step spent in each phase and in none of the phases within it.

    One stack for all threads: on a GPU the backward pass runs in a thread of its own while the main one waits.
    """

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self._current: dict[str, float] = {}
        self._stack: list[str] = []
        self._since = 0.0
        self._began = 0.0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """The time within belongs to ``name``."""
        self._account()
        self._stack.append(name)
        try:
            yield
        finally:
            self._account()
            self._stack.pop()

    def step(self) -> None:
        """A step ends and the next begins."""
        self._account()
        if self._began:
            self.steps.append({**self._current, "step": self._since - self._began})
        self._current = {}
        self._began = self._since

    def _account(self) -> None:
        torch.cuda.synchronize()
        now = time.perf_counter()
        if self._stack:
            name = self._stack[-1]
            self._current[name] = self._current.get(name, 0.0) + now - self._since
        self._since = now

    def within(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """``function``, with its time belonging to ``name``."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.phase(name):
                return function(*args, **kwargs)

        return call


class Profile:
    """Clocks phases in all steps but the last ones, and profiles those."""

    def __init__(self, request: LaunchRequest, rank: int) -> None:
        self._request = request
        self._rank = rank
        self._clock = PhaseClock()
        activities = [torch.profiler.ProfilerActivity.CPU]
        if request.device == "cuda":
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        self._profiler = torch.profiler.profile(activities=activities)
        self._profiling = False

    def install(self) -> None:
        """Put the clock around forward, backward, optimizer, communication and data."""
        within = self._clock.within
        megatron_internals.wrap_phases(within)
        step.megatron_internals.next_batch = within("data", megatron_internals.next_batch)
        group = torch.distributed.ProcessGroup
        for name in _COLLECTIVES:
            if hasattr(group, name):
                setattr(group, name, _method(within("communication", getattr(group, name))))
        torch.distributed.Work.wait = _method(within("communication", torch.distributed.Work.wait))
        megatron_internals.observe_training(
            megatron_internals.Hooks(on_setup=self._on_setup, before_step=self._before_step, on_end=self._on_end)
        )

    def _on_setup(self, model: Any, optimizer: Any, scheduler: Any, args: Any) -> None:
        optimizer.step = self._clock.within("optimizer", optimizer.step)

    def _before_step(self, done: int) -> None:
        if not self._profiling:
            self._clock.step()
        if done == self._request.steps - PROFILED_STEPS:
            self._profiling = True
            self._profiler.start()

    def _on_end(self) -> None:
        torch.cuda.synchronize()
        self._profiler.stop()
        on_device = self._request.device == "cuda"
        operators = {}
        for event in self._profiler.key_averages():
            taken = event.self_device_time_total if on_device else event.self_cpu_time_total
            if taken > 0:
                operators[event.key] = {"seconds": taken / 1e6 / PROFILED_STEPS, "calls": event.count / PROFILED_STEPS}
        self._request.write_measurement(
            self._rank, {"rank": self._rank, "phases": self._clock.steps, "operators": operators}
        )


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` as an attribute of a class that binds."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)

    return method


def install(request: LaunchRequest, args: Any, rank: int) -> None:
    """Profile this rank."""
    Profile(request, rank).install()
