"""What every executor does: run one launch to its end, or to a planned kill, and leave no process behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

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
    """Runs launches somewhere."""

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
    ) -> LaunchOutcome:
        """Run one launch. Raises ``LaunchError`` for a crash, the time limit, a missing package or a full disk."""
        ...
