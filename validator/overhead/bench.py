"""Carries out measured launches: folders, requests, the device lock."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

from validator.check.arguments import launch_arguments
from validator.check.launches import Launches
from validator.check.plan import LaunchPlan
from validator.execute.nvml_watch import no_memory_errors
from validator.execute.request import LaunchRequest
from validator.overhead.arms import Arm
from validator.overhead.lock import device_lock, device_names
from validator.overhead.timings import LaunchTiming, read_measured, take_timing
from validator.pipeline import Corpus
from validator.pipeline.overhead import OverheadPolicy
from validator.report.model import LaunchRow

#: Steps of a profiled launch: first ones dropped, clocked by phase, and under the profiler.
PROFILE_WARMUP, PROFILE_CLOCKED, PROFILE_PROFILED = 2, 4, 2


@final
@dataclass(slots=True)
class Bench:
    """Measured launches of one pipeline, one after the other. ``changes`` are the ``--env`` settings; ``rows`` collects
    what is said of each launch.
    """

    launches: Launches
    policy: OverheadPolicy
    changes: Mapping[str, str] = field(default_factory=dict)
    lock_directory: Path | None = None
    rows: list[LaunchRow] = field(default_factory=list)

    def time(self, arm: Arm, number: int, total: int) -> LaunchTiming:
        """Launch ``arm`` and take its step times. Raises ``LaunchError`` where the launch fails."""
        name = f"{arm.name}-{number}"
        steps = self.policy.warmup + self.policy.timed + 1
        request = self._request(arm, name, steps, "time")
        ranks = self._launch(request, arm, name, f"timed, {arm.purpose}", total)
        return take_timing(arm.name, ranks, self.policy.warmup, self.policy.timed)

    def profile(self, arm: Arm, total: int) -> list[dict[str, Any]]:
        """Launch ``arm`` under the phase clock and the profiler; what every rank saw."""
        name = f"profile-{arm.name}"
        steps = PROFILE_WARMUP + PROFILE_CLOCKED + PROFILE_PROFILED
        request = self._request(arm, name, steps, "profile")
        return self._launch(request, arm, name, f"profiled, {arm.purpose}", total)

    def _request(self, arm: Arm, name: str, steps: int, measure: str) -> LaunchRequest:
        folder = self.launches.folder(f"overhead/{name}")
        computation = replace(arm.computation, steps=steps)
        plan = LaunchPlan(name, arm.purpose)
        words = launch_arguments(computation, plan, folder, None, None)
        if not arm.deterministic:
            words.remove("--deterministic-mode")
        data = computation.data
        return LaunchRequest(
            device=str(computation.device),
            spec=str(computation.spec),
            arguments=tuple(words),
            corpus=dict(data.to_json()["corpus"]) if isinstance(data, Corpus) else None,  # type: ignore[call-overload]
            ranks=computation.world_size,
            steps=steps,
            seed=computation.seed,
            trajectory=folder / "trajectory",
            scratch=folder,
            record=False,
            stamps=self.launches.stamps,
            switches={**self.launches.switches, **arm.switches},
            measure=measure,
            settings=arm.settings,
        )

    def _launch(self, request: LaunchRequest, arm: Arm, name: str, purpose: str, total: int) -> list[dict[str, Any]]:
        progress = self.launches.progress
        surroundings = replace(self.launches.surroundings, variables={**arm.variables, **self.changes})
        log = request.scratch / "log.txt"
        progress.launch(name, purpose, request.steps, len(self.rows) + 1, total)
        started = time.monotonic()
        ended = "failed"
        try:
            request.scratch.mkdir(parents=True)
            lock = device_lock(
                device_names(arm.computation.device, {**os.environ, **surroundings.variables}),
                directory=self.lock_directory,
                on_wait=lambda device: progress.step(0, f"waiting for another check's timed launch on {device}"),
            )
            with lock, no_memory_errors(request.device, executor=self.launches.executor, folder=request.scratch):
                outcome = self.launches.executor.launch(
                    request, surroundings, log=log, limit_seconds=self.launches.pipeline.policy.launch_seconds
                )
            ended = str(outcome.ended)
            measured = read_measured(request)
            shutil.rmtree(request.scratch / "corpus", ignore_errors=True)
            shutil.rmtree(request.scratch / "data_cache", ignore_errors=True)
            return measured
        finally:
            progress.end(ended)
            steps = f"1..{request.steps}" if ended == "completed" else "none"
            self.rows.append(LaunchRow(name, purpose, steps, ended, time.monotonic() - started, str(log)))
