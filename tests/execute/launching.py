"""One launch of the double, for tests of the executor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.double.double import Double
from validator.execute.interpreter import find_interpreter
from validator.execute.kit import surround
from validator.execute.launch import LaunchOutcome
from validator.execute.leftovers import MARK
from validator.execute.local import LocalExecutor
from validator.execute.request import LaunchRequest
from validator.trajectory.follower import Follower


def request_in(folder: Path, **changes: Any) -> LaunchRequest:
    """A launch of two ranks and six steps in ``folder``/reference."""
    launch = folder / "reference"
    values: dict[str, Any] = {
        "device": "cpu",
        "spec": "reference",
        "arguments": (),
        "corpus": None,
        "ranks": 2,
        "steps": 6,
        "seed": 1,
        "trajectory": launch / "trajectory",
        "scratch": launch,
    }
    return LaunchRequest(**values | changes)


def launch(double: Double, folder: Path, request: LaunchRequest | None = None, **options: Any) -> LaunchOutcome:
    """Run the double once, under a limit of ten seconds unless told otherwise."""
    request = request or request_in(folder)
    request.scratch.mkdir(parents=True, exist_ok=True)
    surroundings = surround(folder / "kit", find_interpreter(str(double.python)), None, {}, {})
    follower = Follower(request.trajectory, request.ranks)
    settings: dict[str, Any] = {"log": request.scratch / "log.txt", "limit_seconds": 10.0, "watch": follower}
    return LocalExecutor(look_every=0.02).launch(request, surroundings, **settings | options)


def processes_of_launches_in(folder: Path) -> list[int]:
    """Living processes that run below ``folder``: by working directory, whatever session or parent they have."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                carries_mark = f"{MARK}=".encode() in (entry / "environ").read_bytes()
                if carries_mark and (entry / "cwd").readlink().is_relative_to(folder.resolve()):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def wait_until_gone(folder: Path, seconds: float = 20.0) -> list[int]:
    """Processes still there after ``seconds``, or none as soon as all have gone."""
    deadline = time.monotonic() + seconds
    while (left := processes_of_launches_in(folder)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left
