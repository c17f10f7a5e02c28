"""Launches as jobs of a Slurm cluster, submitted through submitit. The run's folder must be on a shared file system."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

from validator.environment import Gpu, Host
from validator.errors import LaunchError
from validator.execute import slurm_devices, slurm_jobs
from validator.execute.interpreter import Interpreter, find_interpreter
from validator.execute.kit import build_kit
from validator.execute.launch import Ending, LaunchOutcome, OnProgress, OnWait, StopWhen, Surroundings, Watch
from validator.execute.request import LaunchRequest
from validator.execute.slurm_job import SlurmJob
from validator.execute.slurm_jobs import JobState
from validator.execute.slurm_options import SlurmOptions
from validator.report.text import printable
from validator.trajectory.groups import Moment

#: Seconds between two looks at what a launch has recorded, and at its job.
LOOK_EVERY = 0.2
ASK_EVERY = 2.0

#: The most machines that a job may ask for here.
MOST_NODES = 4096


@final
@dataclass(slots=True)
class SlurmExecutor:
    """Runs each launch as one job on ``node_count`` nodes. ``folder`` is for the job that asks what the nodes are."""

    options: SlurmOptions
    node_count: int
    device: str
    folder: Path
    memory_gibibytes: int | None = None
    look_every: float = LOOK_EVERY
    ask_every: float = ASK_EVERY
    _host: Host | None = None

    @classmethod
    def start(cls, options: SlurmOptions, node_count: int, device: str, folder: Path, memory: int | None) -> Self:
        """One that can be used: cancels what dead products left in the queue. Raises ``LaunchError`` without Slurm."""
        try:
            import submitit  # noqa: F401, PLC0415 - an optional dependency
        except ImportError:
            raise LaunchError(
                "submitit is not installed beside the validator; pip install 'megatron-change-validator[slurm]'."
            ) from None
        slurm_jobs.sweep()
        return cls(options, node_count, device, folder, memory)

    @property
    def observed(self) -> Mapping[str, str]:
        return {}

    @property
    def place(self) -> str:
        return "Slurm"

    @property
    def nodes(self) -> int:
        return MOST_NODES

    def inherited(self) -> Mapping[str, str]:
        """Nothing: a job starts with the variables that it is given."""
        return {}

    def find_interpreter(self, option: str | None, megatron: Path | None) -> Interpreter:  # noqa: ARG002
        """The interpreter as it is found here: it is on the file system that the nodes share."""
        return find_interpreter(option)

    def side_by_side(self, device: str, ranks: int, launches: int) -> tuple[SlurmExecutor, ...]:  # noqa: ARG002
        """See ``Executor``. Each launch is a job, and Slurm gives every job devices of its own, or lets it wait."""
        return (self,) * launches

    def host(self) -> Host:
        """The machine of a job's first task: of the newest launch, else of a small job that only looks."""
        if self._host is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            interpreter = find_interpreter(None)
            kit = build_kit(self.folder / "kit", interpreter)
            surroundings = Surroundings(interpreter.path, kit, None, {})
            self._carry_out(self._job(self.folder, self.folder / "log.txt", surroundings, None), 120.0)
            self._host = _read_host(self.folder)
        return self._host

    def memory_errors(self, folder: Path) -> dict[str, str]:
        """What the GPUs of the launch in ``folder`` counted meanwhile, by node: told by the job's tasks."""
        counted = slurm_devices.memory_errors(folder)
        return {f"node {printable(node)}": printable(words) for node, words in counted.items()}

    def launch(
        self,
        request: LaunchRequest,
        surroundings: Surroundings,
        *,
        log: Path,
        limit_seconds: float,
        watch: Watch | None = None,
        on_progress: OnProgress | None = None,
        stop_when: StopWhen | None = None,
        on_wait: OnWait | None = None,
    ) -> LaunchOutcome:
        """See ``Executor.launch``. The time limit counts from the job's start; the queue has one of its own."""
        finished: list[Moment] = []

        def look() -> bool:
            """Take in what is new; true when the launch has done all it was started for."""
            new = watch.poll() if watch is not None else []
            finished.extend(new)
            if on_progress is not None:
                on_progress(new)
            return stop_when is not None and stop_when(finished)

        try:
            request.trajectory.mkdir(parents=True, exist_ok=True)
            request.write(request.scratch / "request.json")
        except OSError as error:
            raise LaunchError(
                f"The launch cannot be started: {error.strerror} ({error.filename}); change --out."
            ) from error
        started = time.monotonic()
        job = self._job(request.scratch, log, surroundings, request)
        ending = self._carry_out(job, limit_seconds, look, on_wait)
        seconds = time.monotonic() - started
        if ending is Ending.COMPLETED:
            look()
        host = _read_host(request.scratch)
        if self._host is not None and _class_of(host) != _class_of(self._host):
            raise LaunchError(
                f"The job ran on a machine with {_named(host)}, others of this check on {_named(self._host)}; "
                f"choose one kind of node with --slurm-option constraint=…: see {log}."
            )
        return LaunchOutcome(ending, seconds, log)

    def _job(self, folder: Path, log: Path, surroundings: Surroundings, request: LaunchRequest | None) -> SlurmJob:
        return SlurmJob(
            self.options, self.node_count, self.device, self.memory_gibibytes, folder, log, surroundings, request
        )

    def _carry_out(self, job: SlurmJob, limit: float, look: Any = None, on_wait: OnWait | None = None) -> Ending:
        """Submit, watch, and leave no job behind."""
        number = job.submit(limit)
        over = False
        submitted = heard = time.monotonic()
        begun: float | None = None
        asked = 0.0
        try:
            while True:
                now = time.monotonic()
                if now - asked >= (0.2 if job.is_ending else self.ask_every if begun else 1.0):
                    state, asked = slurm_jobs.look(number, heard), now
                    if state is not None:
                        heard = now
                        if state.is_over:
                            over = True
                            job.insist(state, number)
                            return Ending.COMPLETED
                        if state.runs and begun is None:
                            begun = now
                        if state.waits:
                            self._wait(number, state, now - submitted, on_wait)
                if begun is not None:
                    if look is not None and look():
                        return Ending.KILLED
                    if now - begun > limit:
                        allowed = f"{limit:g} s (policy.limits.launch_seconds)"
                        raise LaunchError(f"The launch did not end within {allowed} and was cancelled; see {job.log}.")
                time.sleep(self.look_every)
        finally:
            if not over:
                slurm_jobs.end(number)

    def _wait(self, number: str, state: JobState, waited: float, on_wait: OnWait | None) -> None:
        if state.is_hopeless:
            raise LaunchError(
                f"Slurm refused the job {number}: it would wait for ever ({printable(state.reason)}); "
                "change --slurm-option."
            )
        if on_wait is not None:
            on_wait(f"job {number} waits in Slurm's queue ({printable(state.reason)})")
        if waited > self.options.queue_seconds:
            raise LaunchError(
                f"The job {number} still waited in Slurm's queue ({printable(state.reason)}) after "
                f"{self.options.queue_seconds} s (--slurm-option queue_seconds) and was cancelled."
            )


def _read_host(folder: Path) -> Host:
    try:
        told = json.loads((folder / "host.json").read_text(encoding="utf-8"))
        gpus, devices = told["gpus"], told.get("devices", ())
        return Host(
            **{
                **told,
                "gpus": tuple(Gpu(**gpu) for gpu in gpus),
                "devices": tuple(map(slurm_devices.device_of, devices)),
            }
        )
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LaunchError(f"The job did not say what its machine is ({error}); see {folder}.") from error


def _class_of(host: Host) -> tuple[object, ...]:
    return host.architecture, host.cpu_level, tuple(gpu.name for gpu in host.gpus)


def _named(host: Host) -> str:
    return f"{len(host.gpus)} × {host.gpus[0].name}" if host.gpus else f"{host.cpu_model} ({host.cpu_level})"
