"""The command as a process of its own: signals, a full disk, and that nothing is left behind."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.execute.launching import processes_of_launches_in, wait_until_gone
from tests.project import Project

ROOT = Path(__file__).resolve().parent.parent


def start(project: Project, *words: str, **options: object) -> subprocess.Popen[str]:
    """``validator check tiny`` in a process of its own."""
    command = [sys.executable, "-m", "validator", "check", "tiny", "--python", str(project.double.python), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=project.folder,
        env=environment,
        **options,
    )


def wait_for_launch(folder: Path, processes: int) -> None:
    deadline = time.monotonic() + 60
    while len(processes_of_launches_in(folder)) < processes and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(processes_of_launches_in(folder)) >= processes


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_check_ends_every_launch_and_says_so(
    project: Project, number: signal.Signals, code: int
) -> None:
    project.double.misbehave(every={"hang": {"step": 3}, "strays": True})
    process = start(project)
    wait_for_launch(project.folder, 6)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert processes_of_launches_in(project.folder) == []
    assert "every launch was ended" in err
    assert "Traceback" not in out + err
    assert not list(project.newest_run.rglob("trajectory.json"))  # nothing half-written is taken for whole


def test_a_killed_check_leaves_no_process(project: Project) -> None:
    project.double.misbehave(resume_2={"hang": {"step": 5}, "strays": True})
    process = start(project)
    deadline = time.monotonic() + 60
    while not list(project.folder.glob("runs/*/launches/resume-2/trajectory/rank-*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    wait_for_launch(project.folder, 6)
    process.kill()
    process.wait(30)
    assert wait_until_gone(project.folder) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB; needs root and leave to mount."""
    mount = shutil.which("mount")
    folder = tmp_path / "disk"
    folder.mkdir()
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("needs leave to mount a small file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_an_error(project: Project, small_disk: Path) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(bytes(200 * 1024))
    report = project.folder / "report.json"
    process = start(project, "--out", str(small_disk / "out"), "--json", str(report))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Traceback" not in err
    assert json.loads(report.read_text())["verdict"] == "error"
    assert not list(small_disk.rglob("trajectory.json"))
    assert processes_of_launches_in(small_disk) == []


def test_files_that_may_not_grow_are_an_error(project: Project) -> None:
    """Like a full disk, and without root: no process of the check may write a file beyond 8 KiB."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    process = start(project, preexec_fn=limit)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Traceback" not in out + err
    assert out.startswith("ERROR")
    assert processes_of_launches_in(project.folder) == []


def test_a_reader_that_goes_away_is_no_defect(project: Project) -> None:
    process = start(project)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    assert process.wait(60) == 3
    assert "Traceback" not in err


def test_help_starts_at_once_and_without_the_heavy_packages() -> None:
    asked = (
        "import sys, contextlib, io; from validator.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()): main(['--help'])\n"
        "print(sorted({'torch', 'numpy', 'yaml', 'xxhash', 'megatron'} & set(sys.modules)))"
    )
    times = []
    for _ in range(3):
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True, cwd=ROOT)
        times.append(time.perf_counter() - started)
        assert done.stdout == "[]\n"
    assert min(times) <= 0.3
