"""``--parallel`` and ``--launches`` on the double: the same answers, whatever runs at the same time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.execute.launching import processes_of_launches_in
from tests.project import Project
from validator.check.gates import rarest_seen

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with eight cores."""
    monkeypatch.setattr("validator.execute.shares.available_cores", lambda: tuple("01234567"))


def began(project: Project) -> dict[str, tuple[float, float]]:
    """When each launch of the newest run began and ended, by the files that it left."""
    spans = {}
    for folder in (project.newest_run / "launches").iterdir():
        request = (folder / "request.json").stat().st_mtime
        last = max(path.stat().st_mtime for path in (folder / "trajectory").glob("rank-*"))
        spans[folder.name] = (request, last)
    return spans


def overlap(spans: dict[str, tuple[float, float]], one: str, other: str) -> bool:
    return spans[one][0] < spans[other][1] and spans[other][0] < spans[one][1]


@pytest.mark.usefixtures("cores")
def test_what_waits_for_nothing_runs_at_the_same_time_and_gives_the_same_report(project: Project) -> None:
    project.double.misbehave(every={"slow": 0.05})
    one = project.check()
    other = project.check("--parallel", "2")
    assert (one.code, other.code) == (4, 4)
    names = ["reference", "repeat", "resume-1", "resume-2", "resume-3"]
    assert [launch["name"] for launch in other.report["launches"]] == names
    for part in ("verdict", "sentence", "environment", "unexercised", "waivers", "divergence", "next_step"):
        assert one.report[part] == other.report[part]
    assert one.outcomes == other.outcomes == ("no_baseline", "holds", "holds", "holds")
    spans = began(project)
    assert overlap(spans, "reference", "resume-1")
    for first, then in (("resume-1", "resume-2"), ("resume-2", "resume-3")):
        assert not overlap(spans, first, then)
    moments = sorted((at, change) for span in spans.values() for at, change in zip(span, (1, -1), strict=True))
    running = most = 0
    for _, change in moments:
        running += change
        most = max(most, running)
    assert most == 2


@pytest.mark.usefixtures("cores")
def test_plain_lines_say_which_launch_they_are_about(project: Project) -> None:
    ran = project.check("--parallel", "3")
    lines = ran.err.splitlines()
    assert lines[0] == "[1/5] reference: uninterrupted, saves nothing"
    assert any(line.startswith("[2/5] resume-1: starts fresh") for line in lines)
    assert any(re.fullmatch(r"\[3/5\] repeat: completed after .*", line) for line in lines)
    assert len(lines) == 10


@pytest.mark.usefixtures("cores")
def test_a_reference_that_fails_ends_what_was_started_beside_it(project: Project) -> None:
    project.double.misbehave(reference={"crash": {"step": 2}}, resume_1={"hang": {"step": 2}})
    started = time.monotonic()
    ran = project.check("--parallel", "2")
    assert time.monotonic() - started < 15  # the time limit is 20 s
    assert (ran.code, ran.verdict) == (3, "error")
    assert ran.outcomes == ("error", "not_run", "not_run", "not_run")
    ended = {launch["name"]: launch["ended"] for launch in ran.report["launches"]}
    assert ended == {"reference": "failed", "resume-1": "not needed any more"}
    assert processes_of_launches_in(project.folder) == []


@pytest.mark.usefixtures("cores")
def test_a_chain_that_fails_beside_a_sound_reference_is_an_error_of_its_gate_alone(project: Project) -> None:
    project.double.misbehave(resume_1={"crash": {"step": 2}})
    ran = project.check("--parallel", "2")
    assert (ran.code, ran.verdict) == (3, "error")
    assert ran.outcomes == ("no_baseline", "holds", "error", "holds")
    assert [launch["name"] for launch in ran.report["launches"]] == ["reference", "repeat", "resume-1"]


@pytest.mark.usefixtures("cores")
def test_a_mismatch_is_repeated_and_the_chain_that_nobody_needs_is_ended(project: Project) -> None:
    project.record_golden()
    project.double.misbehave(every={"diverge": {"step": 4}}, resume_1={"hang": {"step": 2}})
    ran = project.check("--parallel", "2")
    assert (ran.code, ran.verdict) == (1, "changed")
    assert [launch["name"] for launch in ran.report["launches"]] == ["reference", "repeat", "resume-1"]
    assert ran.report["launches"][-1]["ended"] == "not needed any more"


@pytest.mark.usefixtures("cores")
def test_timed_launches_are_alone(project: Project) -> None:
    every = {"step_seconds": {"deterministic": 0.103, "default": 0.10}, "jitter": 0.01}
    project.double.misbehave(every=every, resume_3={**every, "slow": 0.1})
    ran = project.check("--parallel", "4", "--overhead", "advisory")
    names = [launch["name"] for launch in ran.report["launches"]]
    timed = [name for name in names if name.startswith("overhead")] or names[5:]
    spans = began_of(project, names)
    for name in timed:
        assert not [other for other in names if other != name and overlap(spans, name, other)]


def began_of(project: Project, names: list[str]) -> dict[str, tuple[float, float]]:
    spans = {}
    for name in names:
        (folder,) = [path.parent for path in project.newest_run.rglob("request.json") if path.parent.name == name]
        begun = (folder / "request.json").stat().st_mtime
        spans[name] = (begun, max(path.stat().st_mtime for path in folder.rglob("*") if path.is_file()))
    return spans


def test_a_machine_with_too_few_cores_is_refused_in_a_sentence(project: Project) -> None:
    ran = project.check("--parallel", "1000")
    cores = len(os.sched_getaffinity(0))
    assert ran.code == 2
    assert f"--parallel 1000 needs 2000 CPU cores for launches of 2 ranks each, and this machine has {cores}" in ran.err
    assert not list(project.folder.glob("runs/*/launches"))


@pytest.mark.parametrize("words", [("--parallel", "0"), ("--launches", "-1"), ("--launches", "0")])
def test_numbers_below_one_are_refused(project: Project, words: tuple[str, str]) -> None:
    ran = project.check(*words)
    assert ran.code == 2
    assert f"{words[0]} {words[1]} is not accepted" in ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_of_them(project: Project, number: signal.Signals) -> None:
    project.change("ranks: 2", "ranks: 1")
    project.double.misbehave(every={"hang": {"step": 2}, "strays": True})
    command = [
        sys.executable,
        "-c",
        PATCHED,
        "check",
        "tiny",
        "--python",
        str(project.double.python),
        "--parallel",
        "2",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=project.folder, env=environment)

    def both_run() -> bool:
        recorded = {file.parent for file in project.folder.glob("runs/*/launches/*/trajectory/rank-*")}
        return len(recorded) == 2 and len(processes_of_launches_in(project.folder)) >= 4

    deadline = time.monotonic() + 60
    while not both_run() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(processes_of_launches_in(project.folder)) >= 4
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert "every launch was ended" in err
    assert "Traceback" not in err
    assert processes_of_launches_in(project.folder) == []


#: The command on a machine with two cores, whatever this one has.
PATCHED = """
import sys
import validator.execute.shares as shares
shares.available_cores = lambda: ("0", "1")
from validator.cli import main
sys.exit(main(sys.argv[1:]))
"""


class TestMoreLaunches:
    def test_as_many_as_are_asked_for_although_the_golden_agrees(self, project: Project) -> None:
        project.record_golden()
        ran = project.check("--launches", "4")
        assert (ran.code, ran.verdict) == (0, "pass")
        names = [launch["name"] for launch in ran.report["launches"]]
        assert names == ["reference", "repeat", "repeat-2", "repeat-3", "resume-1", "resume-2", "resume-3"]
        gate = ran.gate("repeatability")
        assert gate["sentence"] == "6 independent launches agree, 2 of them when the golden was recorded."
        # 1 - 0.05 ** (1 / 4) = 0.527
        assert gate["notes"] == [
            "a deviation in 52.7 % of launches or more would have been seen here with 95 % probability"
        ]
        assert "--launches 4" in ran.report["reproduce"]

    def test_one_that_differs_is_found_and_ends_the_row(self, project: Project) -> None:
        project.record_golden()
        project.double.misbehave(repeat_2={"diverge": {"step": 4}})
        ran = project.check("--launches", "5")
        assert (ran.code, ran.verdict) == (1, "nondeterministic")
        assert [launch["name"] for launch in ran.report["launches"]] == ["reference", "repeat", "repeat-2"]

    @pytest.mark.usefixtures("cores")
    def test_they_run_side_by_side_too(self, project: Project) -> None:
        project.record_golden()
        ran = project.check("--launches", "4", "--parallel", "4")
        assert (ran.code, ran.verdict) == (0, "pass")
        assert len(ran.report["launches"]) == 7

    def test_a_gate_that_is_off_is_no_place_for_them(self, project: Project) -> None:
        project.change("repeatability: required", "repeatability: off")
        ran = project.check("--launches", "2")
        assert ran.code == 2
        assert "policy.gates.repeatability is off" in ran.err

    @pytest.mark.parametrize(("launches", "rarest"), [(1, 0.95), (2, 0.7764), (20, 0.1391), (59, 0.0495)])
    def test_the_rarest_deviation_that_would_have_been_seen(self, launches: int, rarest: float) -> None:
        assert rarest_seen(launches) == pytest.approx(rarest, abs=1e-4)
        assert (1 - rarest_seen(launches)) ** launches == pytest.approx(0.05)
