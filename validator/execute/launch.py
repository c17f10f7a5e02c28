"""What every executor does: run one launch to its end, or to a planned kill, and leave no process behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from validator.environment import Host
from validator.execute.interpreter import Interpreter
from validator.execute.request import LaunchRequest
from validator.trajectory.groups import Moment


class Watch(Protocol):
    """The host's view of a launch that is still running (``validator.trajectory``'s ``Follower``)."""

    def poll(self) -> list[Moment]:
        """Moments that all ranks have newly finished, each once."""
        ...


class Ending(StrEnum):
    """How a launch ended, where it did not fail."""

    COMPLETED = "completed"
    KILLED = "killed as planned"


@dataclass(frozen=True, slots=True)
class LaunchOutcome:
    """One launch that came to its end. ``seconds`` is wall time from start to the last process gone."""

    ended: Ending
    seconds: float
    log: Path


#: Called with the moments that all ranks have newly finished.
OnProgress = Callable[[Sequence[Moment]], None]

#: Told why a launch has not begun yet, as long as it has not: ``waits in the queue (Resources)``.
OnWait = Callable[[str], None]

#: Asked after each look at a launch with all moments finished so far; true kills the launch with SIGKILL.
StopWhen = Callable[[Sequence[Moment]], bool]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a launch runs: the interpreter, what is put on its path, its own variables. The caller's shell has no
    part in it.
    """

    python: Path
    kit: Path
    megatron: Path | None
    variables: Mapping[str, str]


class Executor(Protocol):
    """Runs launches somewhere: on this machine, in a container, through a scheduler."""

    @property
    def observed(self) -> Mapping[str, str]:
        """Facts of the image that launches run in, seen from outside; empty where there is none."""
        ...

    @property
    def place(self) -> str:
        """What a person calls it: ``this machine``, ``the image …``."""
        ...

    @property
    def nodes(self) -> int:
        """The most machines that one launch may use."""
        ...

    def inherited(self) -> Mapping[str, str]:
        """Variables that a launch gets from where it runs; the pipeline's own go over them."""
        ...

    def host(self) -> Host:
        """The machine whose hardware a launch computes with. Raises ``LaunchError`` where it cannot be asked."""
        ...

    def find_interpreter(self, option: str | None, megatron: Path | None) -> Interpreter:
        """The interpreter that ``--python`` names there. Raises ``UsageError`` or ``LaunchError`` without one."""
        ...

    def side_by_side(self, device: str, ranks: int, launches: int) -> Sequence[Executor]:
        """One executor for each of ``launches`` at a time, with devices of its own. Raises ``UsageError`` where there
        are too few.
        """
        ...

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
        """Run one launch. ``on_progress`` or ``on_wait`` is called again and again; what it raises ends the launch.

        Raises ``LaunchError`` for a crash, the time limit, a missing package or a full disk.
        """
        ...
