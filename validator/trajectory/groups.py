"""The named parts of what a rank holds, and the moments at which they are fingerprinted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self


class Group(StrEnum):
    """A state group: a named part of what one rank holds."""

    METRICS = "metrics"
    BATCH = "batch"
    GRADIENTS = "gradients"
    PARAMETERS = "parameters"
    GATHERED_PARAMETERS = "gathered_parameters"
    MAIN_PARAMETERS = "main_parameters"
    OPTIMIZER = "optimizer"
    BUFFERS = "buffers"
    RNG = "rng"
    DATA_POSITION = "data_position"
    SCHEDULE = "schedule"


#: Groups that outlive a step: the only ones that exist right after a restore.
PERSISTENT_GROUPS: tuple[Group, ...] = (
    Group.PARAMETERS,
    Group.MAIN_PARAMETERS,
    Group.OPTIMIZER,
    Group.BUFFERS,
    Group.RNG,
    Group.DATA_POSITION,
    Group.SCHEDULE,
)


class Phase(StrEnum):
    """Where in the training loop a fingerprint was taken."""

    SETUP = "setup"  # model and optimizer are built, and restored where the launch loads a checkpoint
    ENTRY = "entry"  # the loop is about to enter its first train_step
    STEP = "step"  # the step is done: the loop reaches the next train_step, or ends


_PHASE_ORDER = {Phase.SETUP: 0, Phase.ENTRY: 1, Phase.STEP: 2}


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of a launch. ``step`` counts finished optimizer steps, so a restore from step 3 is ``setup:3``."""

    step: int
    phase: Phase = Phase.STEP

    def __str__(self) -> str:
        return f"{self.phase}:{self.step}"

    def __lt__(self, other: Moment) -> bool:
        return self.order < other.order

    @property
    def order(self) -> tuple[int, int]:
        """Sort key in the order of time within one launch: setup:k, entry:k, step:k+1, …"""
        return (self.step + (0 if self.phase is Phase.STEP else 1), _PHASE_ORDER[self.phase])

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``step:3``; raises ``ValueError`` for anything else."""
        match = re.fullmatch(r"(setup|entry|step):(\d+)", text)
        if match is None:
            raise ValueError(f"{text!r} is no moment; a moment reads setup:K, entry:K or step:K")
        return cls(int(match[2]), Phase(match[1]))
