"""An image that means harm: contained, told in a sentence, and nothing of it left."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest

from tests.project import Project, Ran
from tests.system.engine import Engine

pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def hostile(_engine: Engine, _debian: str) -> str:
    program = (Path(__file__).parent / "hostile.py").read_text()
    dockerfile = f'FROM {_debian}\nCOPY hostile /usr/local/bin/python3\nVOLUME /data\nENTRYPOINT ["/bin/false"]\n'
    _engine.build("hostile:1", dockerfile, {"hostile": program})
    return "hostile:1"


def limits(project: Project, **changes: int) -> None:
    """Small limits, so that harm shows soon."""
    values = {"launch_seconds": 20, "memory_gibibytes": 1, "disk_gibibytes": 1, "processes": 64} | changes
    text = ", ".join(f"{name}: {value}" for name, value in values.items())
    project.change("limits: {launch_seconds: 120}", f"limits: {{{text}}}")


def act(project: Project, image: str, name: str) -> Ran:
    """Check with the image doing ``name``; what holds for every act is asserted here."""
    file = project.folder / "report.json"
    os.environ["GITHUB_TOKEN"] = "secret"  # noqa: S105 - of nobody
    started = time.monotonic()
    ran = project.run("check", "tiny", "--image", image, "--env", f"ACT={name}", "--json", str(file))
    assert time.monotonic() - started < 60
    assert ran.code == 3, ran
    report = json.loads(file.read_text())
    assert report["verdict"] == "error"
    launch = project.newest_run / "launches" / "reference"
    assert {path.name for path in launch.iterdir()} <= {"log.txt", "request.json", "trajectory"}
    assert all(path.is_file() and not path.is_symlink() for path in (launch / "trajectory").rglob("*"))
    shown = ran.out + ran.err + (launch / "log.txt").read_text()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert "Traceback" not in ran.out + ran.err
    return Ran(ran.code, ran.out, ran.err, report)


def test_it_can_write_nowhere_but_where_it_may_and_sees_no_secret(
    project: Project, engine: Engine, hostile: str
) -> None:
    limits(project)
    sentence = act(project, hostile, "write_everywhere").report["sentence"]
    user = os.getuid() or 65534
    assert f"wrote [], saw [], user {user}" in sentence


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("memory", r"ran out of the 1\.0 GiB of memory that it may use \(policy\.limits\.memory_gibibytes\)"),
        ("too_many", r"wanted more than 64 processes and threads \(policy\.limits\.processes\)"),
        ("sockets", r"reached \[\] through \['lo'\]"),
        ("huge", r"wrote more than 1 GiB \(policy\.limits\.disk_gibibytes\) and was killed|no space was left"),
        ("volume", r"no space was left|ran out of the 1\.0 GiB of memory"),
        ("larger_than_allowed", r"no space was left"),
        ("many_files", r"wrote more than 30000 files"),
        ("sparse", r"'rank-00000\.jsonl' is larger than \d+ bytes; its results are not used"),
        ("malformed", r"make no sense \(RecursionError|was edited"),
        ("claims", r"said nothing readable about its environment|make no sense"),
        ("wrong_types", r"claims have|make no sense"),
        ("link", r"'rank-00000\.jsonl' is no plain file"),
        ("folder_link", r"folder 'trajectory' is no folder"),
        ("pipe", r"'rank-00000\.jsonl' is no plain file"),
        ("deep", r"nested folders deeper than 40"),
        ("closed", r"left a closed folder behind|a folder that cannot be read"),
        ("dark", r"wrote more than 1 GiB|a folder that cannot be read"),  # root reads every folder
        ("sparse_samples", r"larger than 1073741824 bytes together \(policy\.limits\.disk_gibibytes\); its results"),
        ("long_sentence", r"failed: x{149}…x{150}; see"),
        ("line_feeds", r"failed: it exited with code 7; see"),
    ],
)
def test_it_is_stopped_and_the_sentence_says_by_what(
    project: Project, engine: Engine, hostile: str, name: str, sentence: str
) -> None:
    limits(project)
    assert re.search(sentence, act(project, hostile, name).report["sentence"])


@pytest.mark.parametrize("name", ["fork", "never", "tracker_link"])
def test_what_never_ends_is_ended(project: Project, engine: Engine, hostile: str, name: str) -> None:
    limits(project, launch_seconds=3)
    sentence = act(project, hostile, name).report["sentence"]
    assert "did not end within 3 s (policy.limits.launch_seconds) and was killed" in sentence


def test_a_gigabyte_of_log_is_kept_in_part_and_steers_no_terminal(
    project: Project, engine: Engine, hostile: str
) -> None:
    limits(project, launch_seconds=40)
    sentence = act(project, hostile, "loud").report["sentence"]
    assert r"\x1b[31mred\x1b[0m \u202egnirts" in sentence
    log = project.newest_run / "launches" / "reference" / "log.txt"
    assert log.stat().st_size < 16 << 20
    assert re.search(r"\[… \d{10} bytes are left out here …\]", log.read_text())
