"""Two trajectories on disk, compared for a person."""

from __future__ import annotations

from pathlib import Path

from validator.check.findings import divergence_row, environment_rows, spread_rows
from validator.check.out import write_whole
from validator.compare import compare
from validator.comparison import Comparison
from validator.environment import Environment
from validator.errors import TrajectoryError, UsageError
from validator.report.html import Pair, render_comparison
from validator.report.spread import SpreadTable
from validator.report.text import counted, printable
from validator.trajectory.layout import SUMMARY
from validator.trajectory.reader import Trajectory

_MOMENTS_SHOWN = 8


def compare_folders(expected: Path, observed: Path, html: str | None = None) -> tuple[int, list[str]]:
    """Exit code (0 equal, 1 different, 3 refused) and lines to print; ``html`` is where a page of both goes."""
    try:
        left, right = open_trajectory(expected), open_trajectory(observed)
        comparison = compare(left, right)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read ({error.strerror}); copy it anew.") from error
    if html is not None:
        write_whole(Path(html), render_comparison(_pair(left, right, expected, observed, comparison)))
    if comparison.refused is not None:
        return 3, [printable(comparison.refused)]
    moments = counted(comparison.moments_compared, "moment")
    leaves = counted(comparison.leaves_compared, "leaf", "leaves")
    first = comparison.first
    if first is None:
        return 0, [f"Equal: {moments}, {leaves}.", *_environment(left, right)]
    lines = [f"Different, first at {printable(first.sentence)}.", f"{moments} and {leaves} compared."]
    table = SpreadTable.of(spread_rows(comparison.spread)).lines(_MOMENTS_SHOWN)
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    return 1, [*lines, *_environment(left, right)]


def open_trajectory(folder: Path) -> Trajectory:
    """The trajectory in a folder, or in its subfolder ``trajectory`` as goldens and launches have it."""
    for place in (folder, folder / "trajectory"):
        if (place / SUMMARY).is_file():
            return Trajectory.open(place)
    raise UsageError(f"{folder} holds no {SUMMARY}; name the folder of a trajectory, a golden or a launch.")


def _pair(left: Trajectory, right: Trajectory, expected: Path, observed: Path, comparison: Comparison) -> Pair:
    """What the page of two trajectories shows."""
    first = comparison.first
    sentence = comparison.refused or (
        f"Different, first at {first.sentence}."
        if first is not None
        else f"Equal: {counted(comparison.moments_compared, 'moment')}, "
        f"{counted(comparison.leaves_compared, 'leaf', 'leaves')}."
    )
    try:
        rows = environment_rows(Environment.from_json(left.environment), Environment.from_json(right.environment))
    except TrajectoryError:  # the bits are shown all the same; what is printed says why
        rows = ()
    return Pair(
        left, right, str(expected), str(observed), comparison.equal, sentence,
        divergence_row(first) if first is not None else None, spread_rows(comparison.spread), rows,
    )  # fmt: skip


def _environment(expected: Trajectory, observed: Trajectory) -> list[str]:
    try:
        rows = environment_rows(
            Environment.from_json(expected.environment), Environment.from_json(observed.environment)
        )
    except TrajectoryError as error:
        return [f"The environments cannot be compared: {error}"]
    return [
        f"environment {'*' if row.can_change_bits else ' '} {row.kind} {printable(row.name)}: "
        f"{printable(row.expected or 'none')} -> {printable(row.observed or 'none')}"
        for row in rows
    ]
