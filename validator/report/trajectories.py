"""The trajectories that a report speaks of, as far as they are at hand."""

from __future__ import annotations

from dataclasses import dataclass

from validator.trajectory.reader import Trajectory


@dataclass(frozen=True, slots=True)
class Segment:
    """One launch of the resume chain: its name, the step that it restored (0: a fresh start), what it left behind."""

    name: str
    restore: int
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class Trajectories:
    """What the launches of one check left behind, and the golden that they were compared with.

    Anything may be lacking: a launch that failed leaves nothing, and a report may come alone. ``new_golden`` is one
    that travels with the change under test.
    """

    golden: Trajectory | None = None
    new_golden: Trajectory | None = None
    reference: Trajectory | None = None
    repeats: tuple[Trajectory, ...] = ()
    segments: tuple[Segment, ...] = ()
