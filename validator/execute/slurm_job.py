"""One job of Slurm: what it is asked for, how it is handed over, and whether it ended well."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shlex
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from validator.errors import LaunchError
from validator.execute import slurm_jobs
from validator.execute.failures import explain
from validator.execute.kit import launch_environment
from validator.execute.launch import Surroundings
from validator.execute.owner import Owner
from validator.execute.request import LaunchRequest
from validator.execute.slurm_devices import binding
from validator.execute.slurm_jobs import JobState
from validator.execute.slurm_options import SlurmOptions
from validator.report.text import printable

#: Seconds between two looks at the memory errors of a launch's GPUs: a launch that is killed has no last one.
COUNT_EVERY = 2.0

#: Which devices the caller sees says nothing about those of a node.
_OF_THIS_MACHINE = frozenset({"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"})

#: Held while a job is handed over: submitit's messages are caught on a stream of the whole process.
_submitting = threading.Lock()


@final
@dataclass(frozen=True, slots=True)
class SlurmJob:
    """One job: a launch on ``node_count`` nodes, or with no request one that only looks at its machine."""

    options: SlurmOptions
    node_count: int
    device: str
    memory_gibibytes: int | None
    folder: Path
    log: Path
    surroundings: Surroundings
    request: LaunchRequest | None

    @property
    def tasks_per_node(self) -> int:
        return self.options.tasks_per_node if self.request is not None else 1

    @property
    def tasks(self) -> int:
        return self.node_count * self.tasks_per_node if self.request is not None else 1

    @property
    def ranks_per_task(self) -> int:
        return self.request.ranks // self.tasks if self.request is not None else 1

    @property
    def is_ending(self) -> bool:
        """All tasks have said that they are done: the job is about to end."""
        return self.request is not None and all(
            (self.folder / f"task-{task}.ended").exists() for task in range(self.tasks)
        )

    def submit(self, limit: float) -> str:
        """Hand it to Slurm; returns its number. Raises ``LaunchError`` where Slurm refuses it."""
        import submitit  # noqa: PLC0415
        from submitit.core.utils import FailedJobError, FailedSubmissionError  # noqa: PLC0415

        plan = self.folder / "task.json"
        plan.write_text(json.dumps(self._plan(), indent=1), encoding="utf-8")
        program = self.surroundings.kit / "validator" / "execute" / "slurm_task.py"
        command = [str(self.surroundings.python), "-I", "-S", str(program), str(plan)]

        class Candidate(submitit.SlurmExecutor):  # type: ignore[misc]
            """Starts the candidate's interpreter, not ours, and pickles nothing that a job would read."""

            @property
            def _submitit_command_str(self) -> str:
                return shlex.join(command)

        executor = Candidate(self.folder / "submitit")
        try:
            executor.update_parameters(**self._parameters(limit))
            # submitit repeats what sbatch says, and so do we. The stream is the whole process's: one job at a time.
            with _submitting, contextlib.redirect_stderr(io.StringIO()):
                return str(executor.submit(submitit.helpers.CommandFunction(command)).job_id)
        except (FailedJobError, FailedSubmissionError, OSError) as error:
            why = printable(" ".join(str(error).split()))[-300:].rstrip(".")
            raise LaunchError(f"Slurm refused the job: {why}; change --slurm-option.") from error

    def insist(self, state: JobState, number: str) -> None:
        """Raise ``LaunchError`` unless the job came to its end by itself and well."""
        if state.completed:
            return
        if state.why is not None:
            raise LaunchError(f"The job {number} has no result: {state.why} (Slurm: {state.name}); see {self.log}.")
        reason = explain(self.log, state.code, self.surroundings.python)
        raise LaunchError(f"The launch failed: {printable(reason)} (job {number}); see {self.log}.")

    def _plan(self) -> dict[str, object]:
        caller = {name: value for name, value in os.environ.items() if name not in _OF_THIS_MACHINE}
        is_timed = self.request is not None and self.request.measure is not None
        return {
            "python": str(self.surroundings.python),
            "kit": str(self.surroundings.kit),
            "directory": str(self.folder),
            "host": str(self.folder / "host.json"),
            "environment": launch_environment(self.surroundings, caller),
            "device": self.device,
            "binding": binding(),
            "count_every": None if is_timed else COUNT_EVERY,
            "tasks": self.tasks,
            "tasks_per_node": self.tasks_per_node,
            "ranks": self.ranks_per_task,
            "module": "validator.workload.entry",
            "request": None if self.request is None else str(self.folder / "request.json"),
        }

    def _parameters(self, limit: float) -> dict[str, Any]:
        others = {name.replace("_", "-"): value or True for name, value in self.options.others.items()}
        more: dict[str, Any] = {
            "no-requeue": True,
            "export": "NONE",
            "comment": slurm_jobs.COMMENT + Owner.current().text,
            "output": str(self.folder / "batch.txt"),
            "signal": "CONT@60",  # submitit's own would end ranks early
        }
        if "cpus-per-task" not in others:
            more["cpus-per-task"] = self.ranks_per_task
        if self.device == "cuda" and not any(name.startswith(("gpus", "gres")) for name in others):
            more["gpus-per-node"] = self.ranks_per_task * self.tasks_per_node
        if self.memory_gibibytes is not None and not any(name.startswith("mem") for name in others):
            more["mem"] = f"{self.memory_gibibytes}G"
        return {
            "job_name": f"validator-{self.folder.name}",
            "nodes": self.node_count if self.request is not None else 1,
            "ntasks_per_node": self.tasks_per_node,
            "time": math.ceil(limit / 60) + 2,
            "wckey": None,
            "stderr_to_stdout": True,
            "srun_args": ["--output", str(self.log), "--kill-on-bad-exit=1"],
            "additional_parameters": more | others,
        }
