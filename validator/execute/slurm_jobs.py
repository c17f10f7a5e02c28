"""Slurm's jobs as the product sees them: what state one is in, which were left behind, how to end one."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from validator.errors import LaunchError
from validator.execute.owner import Owner
from validator.report.text import printable

#: Seconds that one of Slurm's commands gets to answer.
ANSWER_WITHIN = 60

#: Seconds that a controller may be silent before a launch is given up.
SILENT_FOR = 120

#: Seconds that a cancelled job gets to be gone: Slurm's own KillWait is 30.
GONE_WITHIN = 90

#: What begins the comment of every job of the product; the owner's text follows.
COMMENT = "validator:"

_WAITING = frozenset(
    {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
)
_RUNNING = frozenset({"RUNNING", "COMPLETING", "STOPPED", "SUSPENDED", "SIGNALING", "STAGE_OUT", "RESIZING"})

#: Reasons to wait that nothing but another request, or an administrator, takes away (squeue(1), JOB REASON CODES).
_HOPELESS = frozenset(
    {
        "AccountNotAllowed", "BadConstraints", "InvalidAccount", "InvalidQOS", "JobHeldAdmin", "JobHeldUser",
        "PartitionConfig", "PartitionNodeLimit", "PartitionTimeLimit", "QOSNotAllowed", "QOSTimeLimit",
    }
)  # fmt: skip

#: Why a job ended without an answer, for states that say it by themselves.
_SENTENCES = {
    "CANCELLED": "it was cancelled from outside",
    "TIMEOUT": "it reached the time limit that Slurm was given",
    "DEADLINE": "it reached its deadline in Slurm",
    "PREEMPTED": "it was preempted by another job",
    "NODE_FAIL": "a node of the job failed",
    "BOOT_FAIL": "a node of the job did not boot",
    "OUT_OF_MEMORY": "it ran out of the memory that Slurm granted",
    "REVOKED": "Slurm revoked it",
    "LAUNCH_FAILED": "Slurm could not start it",
}


@dataclass(frozen=True, slots=True)
class JobState:
    """One look at a job. ``reason`` is Slurm's word for why it waits or ended, ``code`` its exit code."""

    name: str
    reason: str
    code: int
    nodes: str

    @property
    def waits(self) -> bool:
        return self.name in _WAITING

    @property
    def is_hopeless(self) -> bool:
        """Waits for what no time brings: another request is needed."""
        return self.waits and self.reason in _HOPELESS

    @property
    def runs(self) -> bool:
        return self.name in _RUNNING

    @property
    def is_over(self) -> bool:
        return not self.waits and not self.runs

    @property
    def completed(self) -> bool:
        return self.name == "COMPLETED"

    @property
    def why(self) -> str | None:
        """Why it ended without having said so itself; ``None`` where its log has to say it."""
        return _SENTENCES.get(self.name)

    @classmethod
    def parse(cls, line: str) -> Self:
        """From one line of ``scontrol show job --oneliner``. Raises ``ValueError`` for anything else."""
        fields = dict(re.findall(r"(\w+)=(\S*)", line))
        if "JobState" not in fields:
            raise ValueError(line)
        code, _, number = fields.get("ExitCode", "0:0").partition(":")
        ended_by = int(number or 0)
        return cls(
            fields["JobState"], fields.get("Reason", "None"), 128 + ended_by if ended_by else int(code),
            fields.get("NodeList", ""),
        )  # fmt: skip


def ask(command: Sequence[str]) -> str:
    """What one of Slurm's commands prints. Raises ``LaunchError`` where it fails or is not there."""
    if shutil.which(command[0]) is None:
        raise LaunchError(f"{command[0]} is not installed here; --slurm needs Slurm's commands on PATH.")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_WITHIN, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(f"{command[0]} did not answer ({type(error).__name__}).") from error
    if done.returncode != 0:
        why = printable(" ".join(done.stderr.split()))[:300].rstrip(".")
        raise LaunchError(f"{command[0]} failed: {why}.")
    return done.stdout


def look(job: str, since: float) -> JobState | None:
    """The job's state; ``None`` where the controller does not answer, and has not since ``since`` (monotonic).

    Raises ``LaunchError`` where it has been silent for too long, or knows no such job.
    """
    try:
        return JobState.parse(ask(["scontrol", "show", "job", "--oneliner", job]))
    except (LaunchError, ValueError) as error:
        if "Invalid job id" in str(error):
            raise LaunchError(
                f"Slurm no longer knows the job {job}; its controller forgot it or was set up anew."
            ) from None
        if time.monotonic() - since > SILENT_FOR:
            raise LaunchError(f"Slurm's controller has not answered for {SILENT_FOR} s ({error})") from error
        return None


def end(job: str) -> None:
    """Kill everything of a job, and wait until it is gone. Raises ``LaunchError`` where it stays."""
    started = time.monotonic()
    state = look(job, started)
    for command in (["scancel", "--signal=KILL", "--full", job], ["scancel", job]):
        if state is None or not state.is_over:
            subprocess.run(command, capture_output=True, timeout=ANSWER_WITHIN, check=False)
    while (state := look(job, started)) is None or not state.is_over:
        if time.monotonic() - started > GONE_WITHIN:
            raise LaunchError(f"The job {job} is still there {GONE_WITHIN} s after it was cancelled; see squeue.")
        time.sleep(0.1)


def sweep() -> list[str]:
    """Cancel jobs of this user whose product has ended; returns their numbers."""
    left = []
    for line in ask(["squeue", "--me", "--noheader", "--format=%i|%k"]).splitlines():
        job, _, comment = line.partition("|")
        owner = Owner.parse(comment.removeprefix(COMMENT)) if comment.startswith(COMMENT) else None
        if owner is not None and owner.is_gone:
            end(job)
            left.append(job)
    return left
