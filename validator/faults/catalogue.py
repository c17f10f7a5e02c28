"""The faults by name, each with what must catch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from validator.errors import LaunchError
from validator.faults import blind_recorder, machinery, reduction_order

if TYPE_CHECKING:
    from validator.workload.recorder import Recorder


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what it does, what must catch it, and how it is put into a launch whose recorder is ``install``'s
    argument.
    """

    name: str
    does: str
    caught_by: str
    install: Callable[[Recorder], None]


CATALOGUE: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            "recorder-constant",
            "every leaf gets the same digest, whatever its bytes",
            "the recorder's proof: known answers, raw bytes recomputed by the host, flipped bits",
            blind_recorder.constant_digests,
        ),
        Fault(
            "recorder-misses-tensor",
            "one optimizer moment is never fingerprinted",
            "the recorder's proof: coverage of optimizer state and checkpoint",
            blind_recorder.miss_a_tensor,
        ),
        Fault(
            "recorder-skips-group",
            "the random number generators are never fingerprinted",
            "the recorder's proof: a group that every rank has is missing",
            blind_recorder.skip_a_group,
        ),
        Fault(
            "reduction-order-by-time",
            "three addends of every gradient are summed in an order taken from the clock, as atomic additions are",
            "repeatability",
            reduction_order.by_time,
        ),
        Fault(
            "hang",
            "rank 0 never enters step 4",
            "the launch's time limit",
            machinery.hang,
        ),
        Fault(
            "rank-killed",
            "the last rank is killed on entering step 4",
            "the executor",
            machinery.kill_a_rank,
        ),
    )
}


def install(name: str, recorder: Recorder) -> None:
    """Put the fault into this launch; raises ``LaunchError`` for a name that is not in the catalogue."""
    fault = CATALOGUE.get(name)
    if fault is None:
        raise LaunchError(f"there is no fault {name!r}; --switch fault= takes one of {', '.join(CATALOGUE)}.")
    fault.install(recorder)
