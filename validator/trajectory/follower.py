"""Watches a launch from the host while its ranks write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import text_name
from validator.trajectory.leaves import fold_ranks
from validator.trajectory.metrics import Metric
from validator.trajectory.scan import RankMoment, RankScanner


class Follower:
    """Follows the rank files of one directory, which may not be there yet.

    It trusts what it reads: seals and leaves are verified when the launch is over (``seal``).
    """

    def __init__(self, directory: Path, world_size: int) -> None:
        self._paths = [directory / text_name(rank) for rank in range(world_size)]
        self._scanners = [RankScanner(str(path), rank) for rank, path in enumerate(self._paths)]
        self._offsets = [0] * world_size
        self._moments: list[dict[Moment, RankMoment]] = [{} for _ in range(world_size)]
        self._reported: set[Moment] = set()

    @property
    def world_size(self) -> int:
        return len(self._paths)

    def poll(self) -> list[Moment]:
        """Moments newly finished on all ranks, in the order of time, each once.

        ``TrajectoryError`` where a file holds what no writer wrote.
        """
        for rank in range(self.world_size):
            self._read(rank)
        common = [m for m in self._moments[0] if m not in self._reported and all(m in each for each in self._moments)]
        self._reported.update(common)
        return common

    @property
    def moments(self) -> tuple[Moment, ...]:
        """All moments reported so far, in the order of time."""
        return tuple(sorted(self._reported, key=lambda moment: moment.order))

    def ending(self, rank: int) -> Mapping[str, Any] | None:
        """The rank's end record; ``None`` while there is none."""
        end = self._scanners[rank].end
        return None if end is None else end.ending

    def groups(self, rank: int, moment: Moment) -> Mapping[Group, bytes]:
        """Digest of each group that the rank has at the moment; ``KeyError`` where it is not finished."""
        return {group: entry.digest for group, entry in self._moments[rank][moment].groups.items()}

    def metrics(self, rank: int, moment: Moment) -> Mapping[str, Metric]:
        """The rank's metrics at the moment; ``KeyError`` where it is not finished."""
        return self._moments[rank][moment].metrics

    def rank_digest(self, rank: int, moment: Moment) -> bytes:
        """Digest of all that the rank holds at the moment; ``KeyError`` where it is not finished."""
        return self._moments[rank][moment].digest

    def moment_digest(self, moment: Moment) -> bytes:
        """Digest over all ranks; ``KeyError`` where one has not finished the moment."""
        return fold_ranks({rank: each[moment].digest for rank, each in enumerate(self._moments)})

    def _read(self, rank: int) -> None:
        try:
            with self._paths[rank].open("rb") as file:
                file.seek(self._offsets[rank])
                data = file.read()
        except FileNotFoundError:
            return
        self._offsets[rank] += len(data)
        for finished in self._scanners[rank].feed(data):
            self._moments[rank][finished.moment] = finished
