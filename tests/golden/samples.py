"""Real trajectories, small, written as a launch writes them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

from validator.golden import Approval
from validator.trajectory.groups import Group, Moment, Phase
from validator.trajectory.leaves import LeafKey, LeafTable, leaf_digest
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory
from validator.trajectory.record import GroupRecord
from validator.trajectory.seal import seal
from validator.trajectory.writer import RankWriter

PIPELINE, HARDWARE = "small", "cpu-x86-64-v3-1x2"
KEY = LeafKey("weight", "float32", (2,))
TABLE = LeafTable((KEY,))
_numbers = itertools.count()

APPROVAL = Approval(
    approver="Ada",
    requester="Grace",
    reason="the first golden",
    launches=2,
    resume="holds",
    recorded=date(2026, 11, 5),
)


def trajectory(
    folder: Path,
    losses: Sequence[float] = (5.5, 5.25, 5.0),
    *,
    seed: int = 0,
    metric: str = "lm_loss",
    header: Mapping[str, object] | None = None,
    complete: bool = True,
) -> Trajectory:
    """Two ranks; ``losses`` at steps 1, 2, …; ``seed`` goes into the weights only."""
    directory = folder / f"trajectory-{next(_numbers)}"
    for rank in (0, 1):
        writer = RankWriter(directory, rank, 2)
        moments = [Moment(0, Phase.SETUP), *(Moment(step) for step in range(1, len(losses) + 1))]
        for moment in moments:
            content = bytes([seed, rank, moment.step, 0]) * 2
            groups = {Group.PARAMETERS: GroupRecord(TABLE, leaf_digest(KEY, content))}
            metrics = {} if moment.step == 0 else {metric: Metric.of(losses[moment.step - 1])}
            writer.append(moment, groups, metrics)
        if complete:
            writer.close({})
    (directory / "claims.json").write_text("{}")
    full = {"pipeline": PIPELINE, "hardware_class": HARDWARE, "stamps": [], **(header or {})}
    return seal(directory, full, {"schema": "validator/environment", "version": 1, "facts": {}})
