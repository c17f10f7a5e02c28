"""Makes a check's folder whole: beside the report, where its trajectories lie, and the golden that it was judged by."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from validator.check.launches import Launched
from validator.check.order import Findings
from validator.check.out import write_whole
from validator.errors import LaunchError
from validator.report.result import GOLDEN, NEW_GOLDEN, RESULT, Index, SegmentPlace
from validator.trajectory.reader import Trajectory


def keep_result(findings: Findings) -> None:
    """Copy the goldens into the check's folder, and write its index. Raises ``LaunchError`` where the disk is full.

    The index is written last: a folder that has one is whole.
    """
    out = findings.order.out
    golden = findings.golden.trajectory if findings.golden is not None else None
    new = findings.new_golden.trajectory if findings.new_golden is not None else None
    try:
        for trajectory, place in ((golden, GOLDEN), (new, NEW_GOLDEN)):
            if trajectory is not None:
                _copy(trajectory, out / place)
    except OSError as error:
        raise LaunchError(
            f"The golden cannot be copied into {out} ({error.strerror}); free space or change --out."
        ) from error
    index = index_of(findings.launched, out, GOLDEN if golden else None, NEW_GOLDEN if new else None)
    write_whole(out / RESULT, index.to_text())


def index_of(launched: Sequence[Launched], out: Path, golden: str | None, new_golden: str | None) -> Index:
    """Where the launches of a check lie, relative to ``out``."""

    def place(each: Launched) -> str:
        return Path(os.path.relpath(each.trajectory.directory, out)).as_posix()

    named = [(each.plan.name, each) for each in launched]
    return Index(
        golden=golden,
        new_golden=new_golden,
        reference=next((place(each) for name, each in named if name == "reference"), None),
        repeats=tuple(place(each) for name, each in named if name.startswith("repeat")),
        segments=tuple(
            SegmentPlace(name, each.plan.restore, place(each)) for name, each in named if name.startswith("resume")
        ),
    )


def _copy(trajectory: Trajectory, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in trajectory.files:
        shutil.copyfile(trajectory.directory / name, target / name)
