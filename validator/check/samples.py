"""Leaves that the host picks before a launch begins and recomputes afterwards from the raw bytes that the launch
hands over.

A recorder that hashes the wrong thing, or nothing, cannot know which leaves it will be asked about.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

from validator.errors import TrajectoryError
from validator.execute.request import LaunchRequest, Sample
from validator.report.text import brief
from validator.trajectory.groups import PERSISTENT_GROUPS, Group, Moment, Phase
from validator.trajectory.leaves import ALGORITHMS, LeafKey, leaf_digest
from validator.trajectory.reader import Trajectory

#: Leaves asked for in each launch: at 8, a recorder blind to half of what it should see stays unseen once in 256
#: launches.
SAMPLES = 8

#: Groups of a step. ``metrics`` needs no sample: the host has its bits and recomputes every leaf of it when sealing.
_STEP_GROUPS = (Group.BATCH, Group.GRADIENTS, *PERSISTENT_GROUPS)

_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1,
    "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


def choose(draw: random.Random, ranks: int, restored: int, last: int, count: int = SAMPLES) -> tuple[Sample, ...]:
    """``count`` different picks among ranks, steps after ``restored`` through ``last``, and groups; some right at
    setup.
    """
    picks: dict[str, Sample] = {}
    while len(picks) < count:
        at_setup = draw.random() < 0.2
        moment = Moment(restored, Phase.SETUP) if at_setup else Moment(draw.randint(restored + 1, last))
        group = draw.choice(PERSISTENT_GROUPS if at_setup else _STEP_GROUPS)
        sample = Sample(draw.randrange(ranks), str(moment), str(group), draw.getrandbits(32))
        picks.setdefault(sample.stem, sample)
    return tuple(picks.values())


def examine(trajectory: Trajectory, request: LaunchRequest, samples: Sequence[Sample]) -> tuple[int, list[str]]:
    """How many samples were recomputed and agree, and a clause for each that does not.

    A sample of a group that the rank does not have, or of a step that a killed launch did not come to, is left out.
    """
    good, problems = 0, []
    for sample in samples:
        moment, group = Moment.parse(sample.moment), Group(sample.group)
        if moment not in trajectory.moments or group not in trajectory.groups(sample.rank, moment):
            continue
        problem = _examine(trajectory, request.samples_directory / sample.stem, sample, moment, group)
        if problem is None:
            good += 1
        else:
            problems.append(f"rank {sample.rank}, {sample.moment}, {sample.group}: {problem}")
    return good, problems


def _examine(trajectory: Trajectory, stem: Path, sample: Sample, moment: Moment, group: Group) -> str | None:
    record = trajectory.leaves(sample.rank, moment, group)
    if not len(record.table):
        return "the group has no leaves"
    index = sample.pick % len(record.table)
    key = record.table.keys[index]
    name = brief(key.name)
    try:
        content = Path(f"{stem}.bin").read_bytes()
        named = json.loads(Path(f"{stem}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return f"the launch handed over no raw bytes of {name} ({type(error).__name__})"
    leaf = named.get("leaf") if isinstance(named, dict) else None
    told = leaf.get("name") if isinstance(leaf, dict) else None
    if told != key.name:
        return f"the launch handed over {brief(repr(told))} where {name} was asked for"
    size = expected_bytes(key)
    if size is not None and size != len(content):
        return f"{name} is {len(content)} bytes, and its dtype and shape say {brief(size)}"
    if leaf_digest(key, content, ALGORITHMS[trajectory.algorithm]) != record.leaf(index):
        return f"the digest recorded for {name} is not that of its bytes"
    return None


def expected_bytes(key: LeafKey) -> int | None:
    """Size of a leaf of this dtype and shape in bytes, ``None`` where the dtype does not say."""
    width = _BYTES.get(key.dtype)
    return None if width is None else width * math.prod(key.shape)


def discard(directory: Path) -> None:
    """Remove the raw bytes once they are examined: they are as large as the tensors."""
    for file in directory.glob("*"):
        file.unlink(missing_ok=True)
    try:
        directory.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise TrajectoryError(
            f"{directory} holds what no launch writes there ({error.strerror}); remove it."
        ) from error
