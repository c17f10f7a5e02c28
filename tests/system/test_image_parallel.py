"""Launches side by side in an image are containers side by side."""

from __future__ import annotations

import time

import pytest

from tests.project import Project
from tests.system.engine import Engine
from tests.system.in_image import check, record

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


def most_at_a_time(engine: Engine, since: float) -> int:
    """How many containers ran at the same time, by what the engine has noted."""
    seconds = {"since": int(since), "until": int(time.time()) + 1}
    events = engine.client.events(**seconds, decode=True, filters={"type": "container", "event": ["start", "die"]})
    running: set[str] = set()
    most = 0
    for event in sorted(events, key=lambda event: event["timeNano"]):
        if event["Action"] == "start":
            running.add(event["id"])
        else:
            running.discard(event["id"])  # one that began before ``since`` may end after it
        most = max(most, len(running))
    return most


def test_launches_side_by_side_are_containers_side_by_side(project: Project, engine: Engine, debian_image: str) -> None:
    project.change("ranks: 2", "ranks: 1")  # two launches of one rank each need two cores
    project.double.misbehave(every={"slow": 0.2})
    recording = time.time()
    assert record(project, debian_image).code == 0
    assert most_at_a_time(engine, recording) == 1
    time.sleep(1.1)  # the engine is asked by the second
    started = time.time()
    ran = check(project, debian_image, "--launches", "3", "--parallel", "2")
    assert (ran.code, ran.verdict, ran.outcomes) == (0, "pass", ("holds", "holds", "holds", "holds"))
    names = ["reference", "repeat", "repeat-2", "resume-1", "resume-2", "resume-3"]
    assert [launch["name"] for launch in ran.report["launches"]] == names
    assert most_at_a_time(engine, started) == 2
