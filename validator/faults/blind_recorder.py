"""Recorders that do not see. Each must end in ``error``, never in a pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from validator.trajectory.groups import Group

if TYPE_CHECKING:
    from validator.workload.recorder import Recorder
    from validator.workload.state import Leaf


def constant_digests(recorder: Recorder) -> None:
    """Answer every content with one digest."""
    recorder.digester.hash = lambda content, seed: bytes(16)


def miss_a_tensor(recorder: Recorder) -> None:
    """Leave the first second moment out of what is read."""
    from validator.workload.state import TrainingState

    read = TrainingState._optimizer

    def without_one(state: TrainingState) -> Iterator[Leaf]:
        missed = False
        for leaf in read(state):
            if not missed and leaf.name.endswith("/exp_avg_sq"):
                missed = True
            else:
                yield leaf

    TrainingState._optimizer = without_one  # type: ignore[method-assign]


def skip_a_group(recorder: Recorder) -> None:
    """Drop the random number generators from everything that is written."""
    append = recorder.writer.append

    def without_rng(moment: Any, groups: Any, metrics: Any) -> None:
        append(moment, {group: record for group, record in groups.items() if group is not Group.RNG}, metrics)

    recorder.writer.append = without_rng  # type: ignore[method-assign]
