"""From a comparison's values to the plain values of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from validator import comparison
from validator.environment import Environment, difference
from validator.report.model import Divergence, EnvironmentDifferenceRow, MetricDifference, SpreadRow, StepRow
from validator.trajectory.groups import Phase
from validator.trajectory.reader import Trajectory

#: Rows of spread that a report holds at most: enough for every group at a few dozen moments.
_SPREAD_ROWS = 400


def divergence_row(found: comparison.Divergence) -> Divergence:
    """The first place at which two trajectories differ, as reports hold it."""
    metric = found.metric
    return Divergence(
        kind=str(found.kind),
        moment=str(found.moment),
        rank=found.rank,
        group=str(found.group or ""),
        leaf=found.leaf.name if found.leaf is not None else "",
        expected=found.expected,
        observed=found.observed,
        metric=None
        if metric is None
        else MetricDifference(
            name=metric.name,
            dtype=metric.observed.dtype,
            expected=repr(metric.expected.value),
            observed=repr(metric.observed.value),
            expected_bits=metric.expected.bits,
            observed_bits=metric.observed.bits,
            ulps=metric.ulps,
        ),
        sentence=found.sentence,
    )


def spread_rows(spread: Sequence[comparison.Spread]) -> tuple[SpreadRow, ...]:
    """How far a divergence spread, moment by moment."""
    return tuple(
        SpreadRow(str(row.moment), str(row.group), row.differing, row.leaves, row.ranks)
        for row in spread[:_SPREAD_ROWS]
    )


def environment_rows(expected: Environment, observed: Environment) -> tuple[EnvironmentDifferenceRow, ...]:
    """What is not as it was when the golden was recorded, what can change bits first."""
    return tuple(
        EnvironmentDifferenceRow(
            kind=str(row.kind),
            name=row.name,
            expected=row.expected,
            observed=row.observed,
            can_change_bits=row.can_change_bits,
            origin=str(row.origin),
        )
        for row in difference(expected, observed)
    )


def step_rows(trajectory: Trajectory) -> tuple[StepRow, ...]:
    """Metrics of every step that have the same bits on all ranks that have them, as exact decimals."""
    rows = []
    for moment in trajectory.moments:
        if moment.phase is Phase.STEP:
            seen: dict[str, set[str]] = {}
            for rank in trajectory.ranks:
                for name, metric in trajectory.metrics(rank, moment).items():
                    seen.setdefault(name, set()).add(repr(metric.value))
            rows.append(StepRow(moment.step, {name: only(values) for name, values in seen.items() if len(values) == 1}))
    return tuple(rows)


def only(values: Iterable[str]) -> str:
    """The single element of ``values``."""
    (value,) = values
    return value
