"""Launches on this machine: how they end, what is said about it, and that no process is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.double.double import Double
from tests.execute.launching import launch, processes_of_launches_in, request_in, wait_until_gone
from validator.errors import LaunchError
from validator.execute.launch import Ending
from validator.execute.local import PORTS, free_port
from validator.trajectory.groups import Moment

STEPS = [Moment(step) for step in range(1, 7)]


def test_a_launch_that_ends_is_completed_and_told_step_by_step(double: Double, tmp_path: Path) -> None:
    told: list[Moment] = []
    outcome = launch(double, tmp_path, on_progress=told.extend)
    assert outcome.ended is Ending.COMPLETED
    assert [moment for moment in told if moment in STEPS] == STEPS
    assert 0 < outcome.seconds < 10
    assert outcome.log.exists()


def test_a_launch_is_killed_as_planned(double: Double, tmp_path: Path) -> None:
    double.misbehave(every={"slow": 0.1, "strays": True})
    outcome = launch(double, tmp_path, stop_when=lambda finished: Moment(3) in finished)
    assert outcome.ended is Ending.KILLED
    assert processes_of_launches_in(tmp_path) == []


def test_nothing_of_a_completed_launch_lives_on(double: Double, tmp_path: Path) -> None:
    double.misbehave(every={"strays": True})
    launch(double, tmp_path)
    assert processes_of_launches_in(tmp_path) == []


def test_a_hanging_launch_ends_at_its_limit(double: Double, tmp_path: Path) -> None:
    double.misbehave(every={"hang": {"step": 2}, "strays": True})
    with pytest.raises(LaunchError, match=r"within 1 s .*launch_seconds.*log\.txt"):
        launch(double, tmp_path, limit_seconds=1)
    assert processes_of_launches_in(tmp_path) == []


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"crash": {"step": 3}}, "illegal memory access"),
        ({"kill_rank": {"step": 3, "rank": 1}}, r"rank 1 was ended by signal 9 \(SIGKILL\)"),
        ({"full": {"step": 3}}, "no space was left"),
        ({"missing_package": "einops"}, "lacks the Python package 'einops'"),
        ({"says": "Megatron 0.16.1 has no megatron.training."}, r"Megatron 0\.16\.1 has no megatron\.training"),
    ],
)
def test_a_launch_that_fails_is_one_sentence_with_its_log(
    double: Double, tmp_path: Path, fault: dict[str, object], sentence: str
) -> None:
    double.misbehave(every=fault)
    with pytest.raises(LaunchError, match=sentence) as raised:
        launch(double, tmp_path)
    assert str(tmp_path / "reference" / "log.txt") in str(raised.value)
    assert "\n" not in str(raised.value)
    assert processes_of_launches_in(tmp_path) == []


def test_a_place_that_cannot_be_written_is_one_sentence(double: Double, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    request = request_in(tmp_path, trajectory=tmp_path / "file" / "trajectory")
    with pytest.raises(LaunchError, match="cannot be started"):
        launch(double, tmp_path, request)


def test_an_exception_on_the_hosts_side_ends_the_launch(double: Double, tmp_path: Path) -> None:
    double.misbehave(every={"slow": 5, "strays": True})

    def interrupted(_: object) -> bool:
        if processes_of_launches_in(tmp_path):
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        launch(double, tmp_path, stop_when=interrupted)
    assert processes_of_launches_in(tmp_path) == []


HOST = """
import sys, pathlib
from tests.double.double import Double
from tests.execute.launching import launch
launch(Double(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])), pathlib.Path(sys.argv[3]))
"""


def start_host(double: Double, folder: Path) -> subprocess.Popen[bytes]:
    """A process of its own that launches the double, and hangs in it with strays in sessions of their own."""
    double.misbehave(every={"hang": {"step": 2}, "strays": True})
    host = subprocess.Popen([sys.executable, "-c", HOST, str(double.python), str(double.faults_file), str(folder)])
    deadline = time.monotonic() + 60
    while (
        len(processes_of_launches_in(folder)) < 6 and time.monotonic() < deadline
    ):  # two ranks, two strays, torchrun, us
        time.sleep(0.02)
    assert len(processes_of_launches_in(folder)) >= 6
    return host


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_no_process_outlives_the_product(double: Double, tmp_path: Path, number: signal.Signals) -> None:
    host = start_host(double, tmp_path)
    host.send_signal(number)
    host.wait(30)
    assert wait_until_gone(tmp_path) == []


def test_no_process_outlives_its_supervisor(double: Double, tmp_path: Path) -> None:
    host = start_host(double, tmp_path)
    children = Path(f"/proc/{host.pid}/task/{host.pid}/children").read_text().split()
    for supervisor in map(int, children):
        os.kill(supervisor, signal.SIGKILL)
    host.wait(30)
    assert host.returncode != 0
    assert wait_until_gone(tmp_path) == []


def test_a_free_port_is_none_that_outgoing_connections_take() -> None:
    assert free_port() in PORTS
