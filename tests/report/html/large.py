"""Trajectories of many ranks and steps, quickly: one rank is written and sealed, the others are its files and its rows
of the tree again.

The reader takes them for what they claim to be. A comparison of moments as a whole would not (their digests are not
folded anew), and the page asks for none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import SUMMARY, TREE, leaves_name, text_name
from validator.trajectory.leaves import LeafKey, LeafTable
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory
from validator.trajectory.record import GroupRecord
from validator.trajectory.seal import seal
from validator.trajectory.summary import write_summary
from validator.trajectory.writer import RankWriter

SIZES = {
    Group.BATCH: 2,
    Group.GRADIENTS: 12,
    Group.PARAMETERS: 12,
    Group.MAIN_PARAMETERS: 12,
    Group.OPTIMIZER: 24,
    Group.BUFFERS: 2,
    Group.RNG: 3,
}

#: Metrics of one rank: those of a model with many layers.
METRICS = 24


def write_rank(folder: Path, steps: int, salt: int) -> Trajectory:
    """One rank of its own, sealed. Other salts give other bits everywhere."""

    def table(group: Group, size: int) -> LeafTable:
        names = (f"decoder.layers.{number}.mixer.{group}" for number in range(size))
        return LeafTable(tuple(LeafKey(name, "float32", (4096, 64)) for name in names))

    tables = {group: table(group, size) for group, size in SIZES.items()}
    with RankWriter(folder, 0, 1) as writer:
        for step in range(1, steps + 1):
            source = np.random.default_rng((step, salt))
            groups = {group: GroupRecord(each, source.bytes(16 * len(each))) for group, each in tables.items()}
            metrics = {f"loss {n}": Metric.of(10.0 / step + n + salt / 2**18, "float32") for n in range(METRICS)}
            writer.append(Moment(step), groups, metrics)
        writer.close({"layout": {"tp": 0, "pp": 0}})
    return seal(folder, {"pipeline": "large"}, {})


def write_many(
    folder: Path, ranks: int, own: Trajectory, other: Trajectory, differs: Callable[[int], NDArray[np.bool_]]
) -> Trajectory:
    """``ranks`` ranks; ``differs(rank)``, ``[moments, groups]``, says where one has ``other``'s rows, not ``own``'s."""
    folder.mkdir()
    moments, groups = len(own.moments), len(own.group_names)
    rank_rows, group_rows = [], []
    for rank in range(ranks):
        where = differs(rank)
        source = other if where.any() else own
        rows = source.tree.rank_rows()[0].copy()  # where its text lies
        rows["digest"][~where.any(axis=1)] = own.tree.rank_rows()[0]["digest"][~where.any(axis=1)]
        rank_rows.append(rows)
        group_rows.append(np.where(where, other.tree.group_rows(0), own.tree.group_rows(0)))
        for named in (text_name, leaves_name):
            os.link(source.directory / named(0), folder / named(rank))
    assert group_rows[0].shape == (moments, groups)
    tree = b"".join(rows.tobytes() for rows in (*rank_rows, *group_rows, own.tree.table_rows()))
    (folder / TREE).write_bytes(tree)
    fields = json.loads((own.directory / SUMMARY).read_text())
    for name in ("schema", "version", "algorithm", "digest"):
        fields.pop(name)
    files = {TREE: len(tree)}
    for rank in range(ranks):
        files |= {each: (folder / each).stat().st_size for each in (text_name(rank), leaves_name(rank))}
    listed = {name: {"bytes": size, "sha256": "not computed"} for name, size in files.items()}
    write_summary(folder, {**fields, "world_size": ranks, "ranks": list(range(ranks)), "files": listed})
    return Trajectory.open(folder, verify=False)
