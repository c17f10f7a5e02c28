"""What keeps a check from finding out is ``error``, exit 3: one sentence, the log's path, no process left behind."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.command import (
    NO_RESUME,
    ONLY_RESUME,
    assert_error,
    assert_names_its_log,
    check,
    copy_of,
)
from validator.trajectory.follower import Follower
from validator.trajectory.groups import Moment

pytestmark = pytest.mark.slow


def finished_steps(folder: Path) -> list[Moment]:
    """What a launch that never came to its end still left readable."""
    return Follower(folder / "launches" / "reference" / "trajectory", 2).poll()


def test_a_killed_rank_is_an_error(tmp_path: Path) -> None:
    pipeline = copy_of("nemotron-cpu", tmp_path, NO_RESUME)
    ran = check(tmp_path, pipeline, "--switch", "fault=rank-killed")
    assert_error(ran, "rank 1 was ended by signal 9 (SIGKILL)")
    assert_names_its_log(ran)
    assert ran.launches == ["reference"]
    assert Moment(2) in finished_steps(ran.folder)


def test_a_launch_that_hangs_is_ended_at_its_limit(tmp_path: Path) -> None:
    limit = {"launch_seconds: 300": "launch_seconds: 25"}
    pipeline = copy_of("nemotron-cpu", tmp_path, NO_RESUME, limit)
    started = time.monotonic()
    ran = check(tmp_path, pipeline, "--switch", "fault=hang")
    assert_error(ran, "did not end within 25 s (policy.limits.launch_seconds) and was killed")
    assert_names_its_log(ran)
    assert 25 <= time.monotonic() - started < 60
    assert Moment(2) in finished_steps(ran.folder)


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("recorder-constant", "the digest recorded for"),
        ("recorder-misses-tensor", "no leaf covers the tensor optimizer: output_layer.weight/exp_avg_sq"),
        ("recorder-skips-group", "the group rng is not recorded at setup:0"),
    ],
)
def test_a_blind_recorder_is_an_error(fault: str, sentence: str, tmp_path: Path) -> None:
    ran = check(tmp_path, copy_of("nemotron-cpu", tmp_path, NO_RESUME), "--switch", f"fault={fault}")
    assert_error(ran, "The recorder is blind: ")
    recorder = ran.gate("recorder")
    assert recorder["outcome"] == "error"
    assert sentence in " ".join([recorder["sentence"], *recorder["notes"]])
    assert ran.outcomes[:3] == ("not_run", "not_run", "not_run")
    assert ran.launches == ["reference"]


#: Bytes: more than anything that a launch writes but its checkpoint's shards, which have three million each.
NO_CHECKPOINT = 1_000_000


def test_a_checkpoint_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    pipeline = copy_of("nemotron-cpu", tmp_path, ONLY_RESUME)
    ran = check(tmp_path, pipeline, prefix=["prlimit", f"--fsize={NO_CHECKPOINT}"])
    assert_error(ran, "The launch failed: no space was left on the device that it wrote to")
    assert_names_its_log(ran)
    assert ran.outcomes == ("not_run", "not_run", "error", "holds")
    assert ran.launches == ["reference", "resume-1"]


def test_a_trajectory_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """Like a disk that fills up under ``--out`` while the launch records, and without root."""
    pipeline = copy_of("nemotron-cpu", tmp_path, NO_RESUME)
    ran = check(tmp_path, pipeline, prefix=["prlimit", "--fsize=60000"])
    assert_error(ran, "no space")
    assert_names_its_log(ran)
    assert ran.launches == ["reference"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB: room for a launch that saves nothing, none for a checkpoint."""
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.system
def test_a_full_disk_is_an_error(small_disk: Path, tmp_path: Path) -> None:
    pipeline = copy_of("nemotron-cpu", tmp_path, ONLY_RESUME)
    ran = check(tmp_path, pipeline, out=small_disk / "out")
    assert_error(ran, "no space")
    assert_names_its_log(ran)
    assert ran.launches == ["reference", "resume-1"]


def bare_python(folder: Path, *packages: str) -> Path:
    """An environment with nothing in it but those of our own packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=60)
    (site,) = folder.glob("lib/python*/site-packages")
    for package in packages:
        (site / package).symlink_to(Path(sysconfig.get_path("purelib")) / package)
    return folder


def test_an_environment_without_torch_is_an_error_that_names_it(tmp_path: Path) -> None:
    pipeline = copy_of("nemotron-cpu", tmp_path, NO_RESUME)
    ran = check(tmp_path, pipeline, "--python", str(bare_python(tmp_path / "bare")))
    assert_error(ran, "lacks the Python package 'torch'")
    assert_names_its_log(ran)


def test_an_environment_without_megatron_is_an_error_that_names_it(tmp_path: Path) -> None:
    ours = Path(sysconfig.get_path("purelib"))
    others = [path.name for path in ours.iterdir() if not path.name.startswith(("megatron", "validator", "_"))]
    pipeline = copy_of("nemotron-cpu", tmp_path, NO_RESUME)
    ran = check(tmp_path, pipeline, "--python", str(bare_python(tmp_path / "bare", *others)))
    assert_error(ran, "megatron-core is not installed")
    assert_names_its_log(ran)
