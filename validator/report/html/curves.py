"""Metric curves of two launches, step by step, with their distance in units in the last place. Pure but for reading."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from validator.trajectory.groups import Group, Moment, Phase
from validator.trajectory.metrics import Metric, ulp_distance
from validator.trajectory.reader import Trajectory

#: Ranks whose metrics are read at most, and of long launches fewer, so that as many steps are read in all.
MOST_RANKS = 8
MOST_STEPS = 3_000

#: Points of one curve at most: more than a screen has columns for.
MOST_POINTS = 240

#: Curves of one page at most.
MOST_CURVES = 60


@dataclass(frozen=True, slots=True)
class Point:
    """One step: the metric on both sides, ``None`` on a side that lacks it."""

    step: int
    expected: Metric | None
    observed: Metric | None

    @property
    def ulps(self) -> int | None:
        """Distance in units in the last place; ``None`` where it is not defined."""
        if self.expected is None or self.observed is None:
            return None
        return ulp_distance(self.expected, self.observed)

    @property
    def differs(self) -> bool:
        """Whether the bits differ, or one side lacks the metric that the other has."""
        return self.expected != self.observed


@dataclass(frozen=True, slots=True)
class Curve:
    """One metric over the steps. ``rank`` is given where ranks differ among themselves; ``steps`` is how many there
    are before thinning; ``compared`` is whether there is another side at all.
    """

    name: str
    rank: int | None
    points: tuple[Point, ...]
    steps: int
    compared: bool = True

    @property
    def first(self) -> Point | None:
        """The first step that differs."""
        return next((point for point in self.points if point.differs), None) if self.compared else None

    @property
    def title(self) -> str:
        """The metric's name, and the rank where there are several curves of it."""
        return self.name if self.rank is None else f"{self.name}, rank {self.rank}"

    @property
    def constant(self) -> bool:
        """Whether all values of both sides are one and the same."""
        return len({side for point in self.points for side in (point.expected, point.observed) if side}) == 1


def draw_curves(expected: Trajectory | None, observed: Trajectory, rank: int | None = None) -> tuple[Curve, ...]:
    """The curves of every metric of ``observed`` beside those of ``expected``; ``rank`` is one to be looked at.

    Of many ranks some are read. Curves that differ come first, then those that vary, then constant ones; among
    equals those that all ranks share.
    """
    most = max(2, min(MOST_RANKS, MOST_STEPS // max(1, len(observed.moments))))
    ranks = chosen(observed.ranks, rank, most)
    series: dict[str, dict[int, list[Point]]] = {}
    for number in ranks:
        for name, points in _read(expected, observed, number).items():
            series.setdefault(name, {})[number] = points
    curves = []
    for name, by_rank in series.items():
        kinds: dict[tuple[Point, ...], int] = {}
        for number, points in by_rank.items():
            kinds.setdefault(tuple(points), number)
        for whole, number in kinds.items():
            shown = thinned(whole, MOST_POINTS)
            curves.append(Curve(name, number if len(kinds) > 1 else None, shown, len(whole), expected is not None))
    curves.sort(key=lambda curve: (curve.first is None, curve.constant, curve.rank is not None))
    return tuple(curves[:MOST_CURVES])


def thinned(points: Sequence[Point], most: int) -> tuple[Point, ...]:
    """At most ``most`` points: of each stretch of steps the one farthest apart, and the very first to differ."""
    if len(points) <= most:
        return tuple(points)
    first = next((point.step for point in points if point.differs), None)
    kept = []
    for at in range(most):
        stretch = points[at * len(points) // most : (at + 1) * len(points) // most]
        kept.append(next((point for point in stretch if point.step == first), None) or max(stretch, key=_apart))
    return tuple(kept)


def finite(metric: Metric | None) -> float | None:
    """The value as a float, ``None`` where there is none to draw."""
    if metric is None:
        return None
    value = float(metric.value)
    return value if math.isfinite(value) else None


def _apart(point: Point) -> tuple[bool, int]:
    return (point.differs, point.ulps or 0)


def chosen(ranks: Sequence[int], wanted: int | None, most: int) -> list[int]:
    """At most ``most`` (≥ 2) ranks: the first and the last (pipeline stages have other metrics), ``wanted``, and some
    between.
    """
    if len(ranks) <= most:
        return list(ranks)
    kept = dict.fromkeys((ranks[0], ranks[-1]))
    if wanted is not None and wanted in ranks and most > 2:
        kept[wanted] = None
    for part in range(1, most):
        if len(kept) < most:
            kept[ranks[part * len(ranks) // most]] = None
    return sorted(kept)


def _read(expected: Trajectory | None, observed: Trajectory, rank: int) -> dict[str, list[Point]]:
    left = _steps(expected.moments) if expected is not None and rank in expected.ranks else {}
    right = _steps(observed.moments)
    series: dict[str, list[Point]] = {}
    for step in sorted({*left, *right}):
        after = observed.metrics(rank, right[step]) if step in right else {}
        if expected is None or step not in left:
            before: Mapping[str, Metric] = {}
        elif step in right and _digest(expected, rank, left[step]) == _digest(observed, rank, right[step]):
            before = after
        else:
            before = expected.metrics(rank, left[step])
        for name in dict.fromkeys((*after, *before)):
            series.setdefault(name, []).append(Point(step, before.get(name), after.get(name)))
    return series


def _digest(trajectory: Trajectory, rank: int, moment: Moment) -> bytes | None:
    return trajectory.groups(rank, moment).get(Group.METRICS)


def _steps(moments: Iterable[Moment]) -> dict[int, Moment]:
    return {moment.step: moment for moment in moments if moment.phase is Phase.STEP}
