"""The faults by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from validator.errors import LaunchError
from validator.faults import (
    blind_recorder,
    data_position,
    hidden_bits,
    losses,
    machinery,
    optimizer_state,
    parameters,
    rare,
    reduction_order,
    rng,
    routing,
    saving,
    surroundings,
)
from validator.faults.model import Fault

if TYPE_CHECKING:
    from validator.workload.recorder import Recorder

CATALOGUE: dict[str, Fault] = {
    fault.name: fault
    for part in (
        rng, data_position, optimizer_state, parameters, saving, reduction_order, routing, losses, hidden_bits,
        surroundings, rare, blind_recorder, machinery,
    )
    for fault in part.FAULTS
}  # fmt: skip


def install(name: str, recorder: Recorder) -> None:
    """Put the fault into this launch; raises ``LaunchError`` for a name that is not in the catalogue."""
    fault = CATALOGUE.get(name)
    if fault is None:
        raise LaunchError(f"there is no fault {name!r}; --switch fault= takes one of {', '.join(CATALOGUE)}.")
    fault.install(recorder)
