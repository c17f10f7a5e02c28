"""Recorders that do not see. Each must end in ``error``, never in a pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from validator.faults.model import Category, Fault, Scenario
from validator.trajectory.groups import Group

if TYPE_CHECKING:
    from validator.workload.recorder import Recorder
    from validator.workload.state import Leaf


def constant_digests(recorder: Recorder) -> None:
    """Answer every content with one digest."""
    recorder.digester.hash = lambda content, seed: bytes(16)
    if hasattr(recorder.digester, "sum_lanes"):  # on a GPU: nothing is added up, and only sizes are told apart
        recorder.digester.sum_lanes = lambda contents, seeds, lanes, place=None: None


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


#: What a comparison that looks at too little lets through.
_BLIND = "https://github.com/NVIDIA/Megatron-LM/pull/6858"

FAULTS = (
    Fault(
        "recorder-constant",
        Category.RECORDER,
        "every leaf gets the same digest, whatever its bytes",
        _BLIND,
        Scenario.PROOF,
        install=constant_digests,
        quick=True,
    ),
    Fault(
        "recorder-misses-tensor",
        Category.RECORDER,
        "one optimizer moment is never fingerprinted",
        _BLIND,
        Scenario.PROOF,
        install=miss_a_tensor,
    ),
    Fault(
        "recorder-skips-group",
        Category.RECORDER,
        "the random number generators are never fingerprinted",
        _BLIND,
        Scenario.PROOF,
        install=skip_a_group,
    ),
)
