"""Checks of the tiny pipeline in an image: the double launches there, with the project's environment bound in."""

from __future__ import annotations

import json
from pathlib import Path

from tests.project import Project, Ran
from tests.system.engine import ENVIRONMENT

_DOUBLE = Path(__file__).resolve().parents[1] / "double"


def binds(project: Project) -> list[str]:
    folders = [*ENVIRONMENT, _DOUBLE, project.double.python.parent]
    return [word for folder in folders for word in ("--bind", str(folder))]


def words(project: Project, image: str, *more: str) -> list[str]:
    """The command line of a check in the image."""
    return ["check", "tiny", "--python", str(project.double.python), "--image", image, *binds(project), *more]


def check(project: Project, image: str, *more: str) -> Ran:
    """Check in the image; the report is there where one was written."""
    file = project.folder / "report.json"
    file.unlink(missing_ok=True)
    ran = project.run(*words(project, image, "--json", str(file), *more))
    return Ran(ran.code, ran.out, ran.err, json.loads(file.read_text()) if file.exists() else {})


def record(project: Project, image: str) -> Ran:
    """Record what the image computes as golden."""
    names = ("--reason", "first recording", "--approver", "Ann", "--python", str(project.double.python))
    return project.run("golden", "record", "tiny", *names, "--image", image, *binds(project))


def changed_bits(ran: Ran) -> list[tuple[str, str, str | None, str | None]]:
    """Kind, name and both values of every difference of the environment that can change bits."""
    rows = ran.report["environment_difference"]
    return [(row["kind"], row["name"], row["expected"], row["observed"]) for row in rows if row["can_change_bits"]]
