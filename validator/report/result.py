"""The folder that a check leaves behind, as a whole: its report and the trajectories that the report speaks of.

``result.json`` says where everything is, relative to the folder, so that the folder can be moved, packed and opened
elsewhere. ``docs/result-format.md`` describes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from validator.errors import TrajectoryError, UsageError
from validator.report.model import Report
from validator.report.reading import read_report
from validator.report.trajectories import Segment, Trajectories
from validator.trajectory.reader import Trajectory

SCHEMA = "validator/result"
VERSION = 1

#: Names within the folder of a check.
RESULT = "result.json"
REPORT = "report.json"
GOLDEN = "golden/trajectory"
NEW_GOLDEN = "new-golden/trajectory"


@dataclass(frozen=True, slots=True)
class SegmentPlace:
    """Where one launch of the resume chain lies, and the step that it restored (0: a fresh start)."""

    name: str
    restore: int
    trajectory: str


@dataclass(frozen=True, slots=True)
class Index:
    """Where the trajectories of a check lie: paths with forward slashes, relative to the check's folder.

    ``new_golden`` is the one that travels with the change under test.
    """

    golden: str | None = None
    new_golden: str | None = None
    reference: str | None = None
    repeats: tuple[str, ...] = ()
    segments: tuple[SegmentPlace, ...] = ()

    def to_text(self) -> str:
        """The content of ``result.json``."""
        trajectories = {
            "golden": self.golden,
            "new_golden": self.new_golden,
            "reference": self.reference,
            "repeats": list(self.repeats),
            "segments": [
                {"name": each.name, "restore": each.restore, "trajectory": each.trajectory} for each in self.segments
            ],
        }
        document = {"schema": SCHEMA, "version": VERSION, "report": REPORT, "trajectories": trajectories}
        return json.dumps(document, indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class Result:
    """A report with what is at hand of its trajectories; ``problems`` says in sentences what could not be opened."""

    report: Report
    trajectories: Trajectories = field(default_factory=Trajectories)
    problems: tuple[str, ...] = ()


def open_result(path: Path) -> Result:
    """The result in a check's folder, or a JSON report alone.

    A trajectory that is missing or damaged is a problem of the result, not an error: its report stays readable. Raises
    ``UsageError`` where there is no report, or where the index is not what it claims to be.
    """
    if not path.is_dir():
        if not path.exists():
            raise UsageError(f"{path} is not there; name the --out folder of a check, or a JSON report.")
        return Result(read_report(path))
    if not (path / RESULT).is_file():
        if (path / REPORT).is_file():
            return Result(read_report(path / REPORT), problems=(f"{RESULT} is missing: no trajectory is shown.",))
        raise UsageError(f"{path} holds no {RESULT}; name the --out folder of a check, or a JSON report.")
    index = read_index(path / RESULT)
    report = read_report(path / REPORT)
    problems: list[str] = []

    def take(place: str | None) -> Trajectory | None:
        if place is None:
            return None
        try:
            return Trajectory.open(path / place)
        except (TrajectoryError, OSError) as error:
            problems.append(f"{place} is left out: {error}")
            return None

    repeats = (take(place) for place in index.repeats)
    segments = ((each, take(each.trajectory)) for each in index.segments)
    trajectories = Trajectories(
        golden=take(index.golden),
        new_golden=take(index.new_golden),
        reference=take(index.reference),
        repeats=tuple(each for each in repeats if each is not None),
        segments=tuple(Segment(each.name, each.restore, found) for each, found in segments if found is not None),
    )
    return Result(report, trajectories, tuple(problems))


def read_index(file: Path) -> Index:
    """The index in ``result.json``. ``UsageError`` where it is no index, of another version, or names a place outside
    of its folder.
    """
    try:
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file} cannot be read ({error.strerror}).") from error
    except (ValueError, RecursionError):
        raise UsageError(f"{file} is no JSON, or is cut off; run the check again.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA or document.get("version") != VERSION:
        raise UsageError(f"{file} is no index of a result: it needs schema {SCHEMA!r} and version {VERSION}.")
    try:
        return _index(document["trajectories"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{file} is no index of a result: {error!r}.") from None


def _index(found: Mapping[str, Any]) -> Index:
    def place(key: str) -> str | None:
        return None if found[key] is None else _inside(found[key])

    segments = (
        SegmentPlace(str(each["name"]), int(each["restore"]), _inside(each["trajectory"])) for each in found["segments"]
    )
    repeats = tuple(map(_inside, found["repeats"]))
    return Index(place("golden"), place("new_golden"), place("reference"), repeats, tuple(segments))


def _inside(place: object) -> str:
    """A relative path that stays in its folder; ``ValueError`` for any other."""
    parts = PurePosixPath(str(place)).parts
    if not isinstance(place, str) or not parts or place.startswith("/") or ".." in parts or "\0" in place:
        raise ValueError(f"{place!r} is no path inside the folder")
    return place
