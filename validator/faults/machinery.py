"""Launches that do not come to their end."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from validator.faults.model import Category, Fault, Scenario

if TYPE_CHECKING:
    from validator.workload.recorder import Recorder


def hang(recorder: Recorder) -> None:
    """Let rank 0 wait for ever before step 4, and with it all that communicate with it."""

    def wait(done: int) -> None:
        while done == 3 and os.environ["RANK"] == "0":
            time.sleep(3600)

    _before_step(wait)


def kill_a_rank(recorder: Recorder) -> None:
    """Kill the last rank before step 4."""

    def kill(done: int) -> None:
        if done == 3 and int(os.environ["RANK"]) == int(os.environ["WORLD_SIZE"]) - 1:
            os.kill(os.getpid(), signal.SIGKILL)

    _before_step(kill)


def _before_step(action: object) -> None:
    from validator.workload import megatron_internals

    megatron_internals.observe_training(megatron_internals.Hooks(before_step=action))  # type: ignore[arg-type]


_LOST_RANK = "https://docs.pytorch.org/docs/stable/elastic/run.html"

FAULTS = (
    Fault(
        "hang",
        Category.MACHINERY,
        "rank 0 never enters step 4",
        _LOST_RANK,
        Scenario.BREAKDOWN,
        install=hang,
    ),
    Fault(
        "rank-killed",
        Category.MACHINERY,
        "the last rank is killed on entering step 4",
        _LOST_RANK,
        Scenario.BREAKDOWN,
        install=kill_a_rank,
        quick=True,
    ),
)
