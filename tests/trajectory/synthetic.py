"""Small launches written with the real writer, every leaf's bytes chosen by the test."""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from validator.comparison import Comparison, Divergence
from validator.trajectory.groups import PERSISTENT_GROUPS, Group, Moment, Phase
from validator.trajectory.leaves import XXH3, Algorithm, LeafKey, LeafTable, leaf_digest
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory
from validator.trajectory.record import GroupRecord
from validator.trajectory.seal import seal
from validator.trajectory.writer import RankWriter

NAMES: Mapping[Group, tuple[str, ...]] = {
    Group.BATCH: ("tokens", "labels"),
    Group.GRADIENTS: ("decoder.weight", "decoder.bias", "embedding.weight"),
    Group.PARAMETERS: ("decoder.weight", "decoder.bias", "embedding.weight"),
    Group.OPTIMIZER: ("decoder.weight.exp_avg", "decoder.bias.exp_avg"),
    Group.RNG: ("cuda", "numpy"),
}


def moments(steps: int, start: int = 0) -> tuple[Moment, ...]:
    """The moments of a launch that begins after step ``start`` and trains to step ``steps``."""
    head = (Moment(start, Phase.SETUP), Moment(start, Phase.ENTRY))
    return (*head, *(Moment(step) for step in range(start + 1, steps + 1)))


@dataclass
class Launch:
    """A launch to write. ``contents`` replaces a leaf's bytes at (rank, moment, group, name); ``names`` its leaves."""

    ranks: int = 2
    moments: Sequence[Moment] = field(default_factory=lambda: moments(3))
    contents: Mapping[tuple[int, Moment, Group, str], bytes] = field(default_factory=dict)
    names: Callable[[int, Moment, Group], Sequence[str]] = lambda _rank, _moment, group: NAMES.get(group, ())
    metrics: Callable[[int, Moment], Mapping[str, Metric]] = lambda _rank, moment: (
        {"loss": Metric.of(8.0 - moment.step), "gradient norm": Metric.of(0.1, "float32")}
        if moment.phase is Phase.STEP
        else {}
    )
    ended: bool = True
    algorithm: Algorithm = XXH3

    def key(self, name: str) -> LeafKey:
        return LeafKey(name, "float32", (4,))

    def content(self, rank: int, moment: Moment, group: Group, name: str) -> bytes:
        # A restore's setup:k holds what step:k held; fresh bytes otherwise.
        chosen = self.contents.get((rank, moment, group, name))
        return chosen if chosen is not None else f"{rank} {moment.step} {group} {name}".encode()

    def groups(self, rank: int, moment: Moment) -> dict[Group, GroupRecord]:
        kept = Group if moment.phase is Phase.STEP else PERSISTENT_GROUPS
        records = {}
        for group in kept:
            names = self.names(rank, moment, group)
            if names:
                keys = tuple(map(self.key, names))
                digests = (
                    leaf_digest(key, self.content(rank, moment, group, key.name), self.algorithm) for key in keys
                )
                records[group] = GroupRecord(LeafTable(keys), b"".join(digests))
        return records

    def write_rank(self, directory: Path, rank: int, world_size: int | None = None) -> None:
        with RankWriter(directory, rank, world_size or self.ranks, self.algorithm) as writer:
            for moment in self.moments:
                writer.append(moment, self.groups(rank, moment), self.metrics(rank, moment))
            if self.ended:
                writer.close({"layout": {"rank": rank, "tp": 0}})

    def write(self, directory: Path) -> Path:
        for rank in range(self.ranks):
            self.write_rank(directory, rank)
        return directory

    def seal(self, directory: Path) -> Trajectory:
        return seal(self.write(directory), {"pipeline": "synthetic", "stamps": []}, {"packages": {"torch": "2.14.1"}})


def changed(*places: tuple[int, Moment, Group, str]) -> Launch:
    """A launch with other bits at the given places."""
    return Launch(contents=dict.fromkeys(places, b"other bits here!"))


def names_at(group: Group, names: Sequence[str]) -> Launch:
    """Other leaf names in one group on rank 1 at step 2."""

    def chosen(at_rank: int, at: Moment, at_group: Group) -> Sequence[str]:
        return names if (at_rank, at, at_group) == (1, Moment(2), group) else NAMES.get(at_group, ())

    return Launch(names=chosen)


def first(comparison: Comparison) -> Divergence:
    """The first divergence, which must be there."""
    assert comparison.first is not None
    return comparison.first


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """No file may grow beyond ``size`` bytes: what a full disk does, for this process only."""
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
