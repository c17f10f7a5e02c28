"""Slurm: an attempt is a batch job of that name; the scheduler queues and places it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import final

from validator.service.engines.local import last_line, written
from validator.service.engines.model import EngineError, Look, Order, Standing
from validator.service.engines.work import Work

_SECONDS = 30.0
_QUEUED = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "SUSPENDED", "RESV_DEL_HOLD"}
_RUNNING = {"RUNNING", "COMPLETING", "STAGE_OUT", "SIGNALING", "STOPPED"}


@final
class SlurmEngine:
    """Submits to ``sbatch`` with ``options``. ``folder`` has to be seen by every node; there the result is found."""

    name = "slurm"
    grace = 60.0  # a shared file system may show what a node wrote with some delay
    delay = 0.0
    tokens = True

    def __init__(self, folder: Path, about: Mapping[str, object], options: str) -> None:
        self._folder = folder
        self._about = about
        self._options = tuple(shlex.split(options))

    def has_room(self) -> bool:
        return True

    def find(self, order: Order, since: float) -> str | None:  # noqa: ARG002 - Slurm is asked by name
        found = self._ask("squeue", "--noheader", "--name", _name(order), "--states", "all", "--format", "%i")
        return found.split()[0] if found.split() else None

    def hand_over(self, order: Order) -> str:
        work = Work(self._folder / order.attempt)
        try:
            work.folder.mkdir(parents=True, exist_ok=True)
            work.write(work.order, written(order, self._about))
            work.write(work.token, order.token, mode=0o600)
        except OSError as error:
            raise EngineError(f"{work.folder} cannot be written: {error.strerror or error}.") from error
        kept = [f"{name}={os.environ[name]}" for name in ("PATH", "HOME", "LANG") if name in os.environ]
        command = shlex.join(["env", *kept, sys.executable, "-m", "validator.service.engines.runner", str(work.folder)])
        said = self._ask(
            "sbatch", "--parsable", "--no-requeue", "--export", "NIL", "--job-name", _name(order),
            "--chdir", str(Path(__file__).parents[3]), "--output", str(work.log), *self._options, "--wrap", command,
        )  # fmt: skip
        return said.strip().split(";")[0]

    def look(self, order: Order, external: str) -> Look:
        work = Work(self._folder / order.attempt)
        try:
            state = self._ask("squeue", "--noheader", "--jobs", external, "--states", "all", "--format", "%T").strip()
        except EngineError as error:
            if "Invalid job id" not in str(error):
                raise
            state = ""  # Slurm forgets an ended job after some minutes
        if state in _QUEUED:
            return Look(Standing.QUEUED, f"Slurm job {external} is {state.lower()}.")
        if state in _RUNNING:
            return Look(Standing.RUNNING, last_line(work.progress) or f"Slurm job {external} runs.")
        if end := work.read(work.end):
            return Look(Standing.ENDED, str(end.get("sentence")), bool(end.get("final")))
        return Look(Standing.LOST, f"Slurm job {external} is {state.lower() or 'gone'} and left no result.")

    def cancel(self, order: Order, external: str) -> None:  # noqa: ARG002 - Slurm is asked by its own number
        try:
            self._ask("scancel", external)
        except EngineError as error:
            if "Invalid job id" not in str(error):
                raise

    @staticmethod
    def _ask(*words: str) -> str:
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
        except FileNotFoundError as error:
            raise EngineError(f"There is no {words[0]} on this machine; install Slurm's commands.") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise EngineError(f"{words[0]} could not be run: {error}.") from error
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise EngineError(f"{words[0]} failed: {said.removeprefix(f'{words[0]}: error: ').rstrip('.')}.")
        return done.stdout


def _name(order: Order) -> str:
    return f"validator-{order.attempt}"
