"""The tensors behind a cell of the map: what differs at one rank, moment and state group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from validator.comparison import MomentPair
from validator.trajectory.differences import KeyDifference, group_differences
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import LeafKey
from validator.trajectory.metrics import Metric, ulp_distance
from validator.trajectory.reader import Trajectory
from validator.trajectory.record import GroupRecord

#: Tensors listed for one cell, and for all cells of a page: about 90 bytes of page each.
MOST_IN_CELL = 40
MOST_IN_PAGE = 9_000

#: Cells that are opened at all for one page.
MOST_CELLS = 4_000


@dataclass(frozen=True, slots=True)
class Place:
    """One state group of one rank at a pair of moments, on both sides."""

    expected: Trajectory
    observed: Trajectory
    pair: MomentPair
    rank: int
    group: Group


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor that differs. ``leaf`` is its number on the shelf; digests in hex, empty on a side that lacks it.

    ``note`` says what else there is to say: another name or form, or a metric's two values.
    """

    leaf: int
    kind: str
    expected: str
    observed: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """What differs at one place: ``differing`` of ``leaves``, the first of them in ``tensors``."""

    moment: str
    rank: int
    differing: int
    leaves: int
    tensors: tuple[Tensor, ...]


@final
@dataclass(slots=True)
class Shelf:
    """Collects the tensors of one page; each name is kept once, in ``leaves`` as (name, dtype and shape)."""

    room: int = MOST_IN_PAGE
    cells: int = MOST_CELLS
    leaves: list[tuple[str, str]] = field(default_factory=list)
    _numbers: dict[LeafKey, int] = field(default_factory=dict)

    def share(self, parts: int) -> tuple[int, int]:
        """Keep room for ``parts`` − 1 others that come later; what is kept goes back with ``give_back``."""
        kept = self.room - self.room // parts, self.cells - self.cells // parts
        self.room, self.cells = self.room - kept[0], self.cells - kept[1]
        return kept

    def give_back(self, room: int, cells: int) -> None:
        """Take back what ``share`` kept."""
        self.room, self.cells = self.room + room, self.cells + cells

    def open(self, place: Place, most: int = MOST_IN_CELL) -> Cell | None:
        """What differs at a place, at most ``most`` of it listed; ``None`` where the page has no room left."""
        if self.cells <= 0:
            return None
        self.cells -= 1
        expected = _record(place.expected, place.rank, place.pair.expected, place.group)
        observed = _record(place.observed, place.rank, place.pair.observed, place.group)
        leaves = max(len(side.table) for side in (expected, observed) if side is not None)
        if expected is None or observed is None:
            return Cell(str(place.pair.observed), place.rank, leaves, leaves, ())
        found = group_differences(expected, observed)
        shown = found[: min(most, max(self.room, 0))]
        self.room -= len(shown)
        tensors = tuple(self._tensor(place, each) for each in shown)
        return Cell(str(place.pair.observed), place.rank, len(found), leaves, tensors)

    def _tensor(self, place: Place, found: KeyDifference) -> Tensor:
        key = found.expected or found.observed
        assert key is not None
        if key not in self._numbers:
            self._numbers[key] = len(self.leaves)
            self.leaves.append((key.name, form_in_words(key)))
        note = ""
        if found.expected is not None and found.observed is not None and found.expected != found.observed:
            note = f"now {found.observed.name}, {form_in_words(found.observed)}"
        elif place.group is Group.METRICS:
            note = _values(place, key.name)
        return Tensor(
            self._numbers[key], str(found.kind), found.expected_digest.hex(), found.observed_digest.hex(), note
        )


def _record(trajectory: Trajectory, rank: int, moment: Moment, group: Group) -> GroupRecord | None:
    """The group's leaves; ``None`` where the trajectory has not got them."""
    try:
        return trajectory.leaves(rank, moment, group)
    except KeyError:
        return None


def form_in_words(key: LeafKey) -> str:
    """``float32[64, 64]``, and the shard where there is one."""
    shard = f" shard {key.shard}" if key.shard else ""
    return f"{key.dtype}[{', '.join(map(str, key.shape))}]{shard}"


def distance(expected: Metric, observed: Metric) -> str:
    """``3 ULP``, or why there is no such figure."""
    ulps = ulp_distance(expected, observed)
    return "no ULP distance" if ulps is None else f"{ulps:,} ULP"


def _values(place: Place, name: str) -> str:
    expected = place.expected.metrics(place.rank, place.pair.expected).get(name)
    observed = place.observed.metrics(place.rank, place.pair.observed).get(name)
    if expected is None or observed is None:
        return ""
    return f"{expected.value!r} → {observed.value!r}, {distance(expected, observed)}"
