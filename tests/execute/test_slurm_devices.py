"""Memory errors of a node's GPUs: counted by a job's task there, told here. A task runs without Slurm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.double.double import Double
from tests.execute.launching import request_in
from tests.execute.nvml_binding import install, python_that_hits
from tests.project import Project
from validator.errors import LaunchError
from validator.execute.interpreter import find_interpreter
from validator.execute.kit import surround
from validator.execute.local import LocalExecutor
from validator.execute.nvml_watch import no_memory_errors
from validator.execute.slurm import SlurmExecutor
from validator.execute.slurm_devices import memory_errors, use_binding
from validator.execute.slurm_job import SlurmJob
from validator.execute.slurm_options import SlurmOptions

#: What the second GPU of the double counts.
ERROR = "GPU 1 (NVIDIA H200) counted 1 uncorrected memory errors (ECC)"


def task(folder: Path, python: Path, *, visible: str = "0,1", **changes: Any) -> subprocess.Popen[bytes]:
    """Start the only task of a job on node n7, as Slurm does. ``changes`` go into its plan."""
    request = request_in(folder, device="cuda")
    request.trajectory.mkdir(parents=True)
    request.write(request.scratch / "request.json")
    surroundings = surround(folder / "kit", find_interpreter(str(python)), None, {}, {})
    log = request.scratch / "log.txt"
    job = SlurmJob(SlurmOptions(), 1, "cuda", None, request.scratch, log, surroundings, request)
    plan = request.scratch / "task.json"
    plan.write_text(json.dumps(job._plan() | changes))
    given = {
        "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n7",
        "CUDA_VISIBLE_DEVICES": visible, "PATH": os.environ["PATH"],
    }  # fmt: skip
    program = surroundings.kit / "validator" / "execute" / "slurm_task.py"
    with log.open("wb") as output:
        command = [sys.executable, "-I", "-S", str(program), str(plan)]
        return subprocess.Popen(command, env=given, stdout=output, stderr=subprocess.STDOUT)


def executor(folder: Path) -> SlurmExecutor:
    return SlurmExecutor(SlurmOptions(), 1, "cuda", folder / "node")


def look_here() -> tuple[()]:
    raise AssertionError("this machine's GPUs are none of the launch's")


def test_a_launchs_memory_errors_come_with_the_name_of_its_node(
    double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = install(tmp_path, monkeypatch)
    python = python_that_hits(tmp_path, double.python, hit)
    with (
        pytest.raises(LaunchError) as caught,
        no_memory_errors("cuda", look_here, executor=executor(tmp_path), folder=tmp_path / "reference"),
    ):
        assert task(tmp_path, python).wait(30) == 0
    assert str(caught.value) == (
        f"Hardware fault: {ERROR} on node n7 during the launch, so its bits say nothing about the software; look after "
        "node n7."
    )
    devices = json.loads((tmp_path / "reference" / "host.json").read_text())["devices"]
    assert [device["driver"] for device in devices] == ["580.65.06", "580.65.06"]


def test_a_launch_that_failed_for_it_tells_both(
    double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = install(tmp_path, monkeypatch)
    double.misbehave(every={"crash": {"step": 2}})
    assert task(tmp_path, python_that_hits(tmp_path, double.python, hit)).wait(30) == 1
    told = pytest.raises(LaunchError, match=r"^Hardware fault: GPU 1 .* on node n7 .* as well: it crashed\.$")
    with told, no_memory_errors("cuda", look_here, executor=executor(tmp_path), folder=tmp_path / "reference"):
        raise LaunchError("it crashed.")


def test_a_launch_that_is_killed_has_its_memory_errors_noted(
    double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = install(tmp_path, monkeypatch)
    double.misbehave(every={"hang": {"step": 2}})
    process = task(tmp_path, double.python, count_every=0.05)
    try:
        deadline = time.monotonic() + 30
        while not (tmp_path / "reference" / "gpus-0.json").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert memory_errors(tmp_path / "reference") == {}
        hit.touch()
        while not memory_errors(tmp_path / "reference") and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    assert memory_errors(tmp_path / "reference") == {"n7": ERROR}


def test_gpus_of_other_jobs_are_not_looked_at(double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hit = install(tmp_path, monkeypatch)
    assert task(tmp_path, python_that_hits(tmp_path, double.python, hit), visible="0").wait(30) == 0
    assert memory_errors(tmp_path / "reference") == {}


def test_without_the_binding_nothing_is_known_and_nothing_fails(double: Double, tmp_path: Path) -> None:
    broken = tmp_path / "pynvml.py"
    broken.write_text("raise RuntimeError\n")
    assert task(tmp_path, double.python, binding=str(broken)).wait(30) == 0
    assert memory_errors(tmp_path / "reference") == {}
    use_binding(None)


def note(folder: Path, name: str, node: str, before: int, after: int) -> None:
    """What one task of a job leaves."""

    def gpu(corrected: int) -> Mapping[str, object]:
        return {
            "index": 0, "name": "NVIDIA H200", "identity": node, "driver": "580", "mig": "off", "ecc": "on",
            "sm_clock_max_mhz": 1980, "power_limit_watts": 700.0, "slowdown_celsius": 89, "nvlinks": 18,
            "corrected": corrected, "uncorrected": 0, "sm_clock_mhz": 1755, "temperature_celsius": 51,
            "power_watts": 412.3, "throttling": [],
        }  # fmt: skip

    folder.mkdir(exist_ok=True)
    content = {"node": node, "before": [gpu(before)], "after": [gpu(after)]}
    (folder / f"gpus-{name}.json").write_text(json.dumps(content))


def test_every_node_is_named_once(tmp_path: Path) -> None:
    for task, node in enumerate(("n7", "n7", "n8", "n9")):
        note(tmp_path / "launch", str(task), node, 3, 3 if node == "n9" else 5)
    words = "GPU 0 (NVIDIA H200) counted 2 corrected memory errors (ECC)"
    assert memory_errors(tmp_path / "launch") == {"n7": words, "n8": words}
    sentence = r"on node n7; GPU 0 .* on node n8 during .* look after node n7 and node n8\.$"
    told = pytest.raises(LaunchError, match=sentence)
    with told, no_memory_errors("cuda", look_here, executor=executor(tmp_path), folder=tmp_path / "launch"):
        pass


@pytest.mark.parametrize("text", ["", "[]", '{"node": "n7", "before": [1], "after": []}', '{"node": "n7"}'])
def test_notes_that_cannot_be_read_are_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "gpus-0.json").write_text(text)
    with pytest.raises(LaunchError, match=r"gpus-0\.json says nothing readable of the node's GPUs"):
        memory_errors(tmp_path)


@pytest.mark.parametrize(("command", "where"), [("check", "check.launches"), ("overhead", "overhead.bench")])
def test_commands_ask_the_executor_for_the_memory_errors_of_each_launch(
    command: str, where: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The executor of this machine stands in for one that launches elsewhere, and the computation for one on GPUs."""
    asked: list[Path] = []

    def told(_: object, folder: Path) -> dict[str, str]:
        asked.append(folder)
        return {"node n7": ERROR}

    def on_gpus(_: str, **more: Any) -> Any:
        return no_memory_errors("cuda", look_here, **more)

    monkeypatch.setattr(LocalExecutor, "memory_errors", told, raising=False)
    monkeypatch.setattr(f"validator.{where}.no_memory_errors", on_gpus)
    ran = project.run(command, "tiny", "--python", str(project.double.python))
    assert ran.code == 3
    assert f"Hardware fault: {ERROR} on node n7 during the launch" in ran.out + ran.err
    assert asked[0].is_relative_to(project.newest_run / "launches")
    assert (asked[0] / "request.json").exists()
