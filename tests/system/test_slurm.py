"""Checks through a real one-node Slurm: tasks, queue, refusals, ends from outside, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.project import Project, Ran
from tests.system.slurm_cluster import Cluster

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


def check(project: Project, *more: str) -> Ran:
    return project.check("--slurm", *more)


def start(project: Project, repository: Path, *more: str) -> subprocess.Popen[bytes]:
    """The product as a process of its own, launching the double through Slurm."""
    command = [sys.executable, "-m", "validator", "check", "tiny", "--python", str(project.double.python), "--slurm"]
    report = ["--json", str(project.folder / "report.json")]
    environment = os.environ | {"PYTHONPATH": str(repository)}
    with (project.folder / "err.txt").open("wb") as err:
        return subprocess.Popen([*command, *report, *more], cwd=project.folder, env=environment, stderr=err)


def wait_until(ready: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def launching(cluster: Cluster) -> list[str]:
    """Numbers of running jobs that launch: not of the one that only looks at its node."""
    lines = cluster.ask("squeue", "--noheader", "--states=RUNNING", "--format=%i %j").splitlines()
    return [line.split()[0] for line in lines if not line.endswith("validator-node")]


def report(project: Project) -> dict[str, object]:
    told: dict[str, object] = json.loads((project.folder / "report.json").read_text())
    return told


def test_a_check_through_slurm_has_the_bits_of_one_on_this_machine(project: Project, cluster: Cluster) -> None:
    assert project.record_golden().code == 0
    ran = check(project)
    assert (ran.code, ran.verdict, ran.outcomes) == (0, "pass", ("holds", "holds", "holds", "holds"))
    jobs = cluster.ask("scontrol", "show", "jobs", "--oneliner").splitlines()
    assert all("Requeue=0" in job for job in jobs)
    assert {path.name for path in project.newest_run.iterdir()} >= {"launches", "report.json"}


def test_the_callers_shell_has_no_part_in_a_job(
    project: Project, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project.record_golden().code == 0
    monkeypatch.setenv("MKL_CBWR", "AVX2")  # would change the bits
    assert check(project).verdict == "pass"


def test_launches_side_by_side_are_jobs_side_by_side(project: Project, cluster: Cluster) -> None:
    assert project.record_golden().code == 0
    ran = check(project, "--parallel", "3", "--launches", "3")
    assert (ran.code, ran.verdict, ran.outcomes) == (0, "pass", ("holds", "holds", "holds", "holds"))
    names = ["reference", "repeat", "repeat-2", "resume-1", "resume-2", "resume-3"]
    assert [launch["name"] for launch in ran.report["launches"]] == names
    jobs = cluster.ask("scontrol", "show", "jobs", "--oneliner").splitlines()
    assert {name for name in names if any(f"JobName=validator-{name} " in job for job in jobs)} == set(names)


def test_a_fault_is_found_through_slurm(project: Project, cluster: Cluster) -> None:
    assert project.record_golden().code == 0
    project.double.misbehave(reference={"random": {"step": 4}}, repeat={"random": {"step": 4}})
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "nondeterministic")
    assert ran.gate("golden")["divergence"]["moment"] == "step:4"


def test_a_job_that_is_cancelled_from_outside_is_an_error(project: Project, cluster: Cluster, repository: Path) -> None:
    project.double.misbehave(every={"hang": {"step": 2}})
    product = start(project, repository)
    wait_until(lambda: launching(cluster))
    cluster.ask("scancel", *launching(cluster))
    assert product.wait(60) == 3
    assert report(project)["verdict"] == "error"
    assert "was cancelled from outside (Slurm: CANCELLED)" in str(report(project)["sentence"])


def test_a_failure_inside_a_job_is_told_from_its_log(project: Project, cluster: Cluster) -> None:
    project.double.misbehave(every={"crash": {"step": 2}})
    ran = check(project)
    assert ran.verdict == "error"
    assert "illegal memory access" in ran.report["sentence"]


def test_the_time_limit_cancels_the_job(project: Project, cluster: Cluster) -> None:
    project.change("launch_seconds: 120", "launch_seconds: 3")
    project.double.misbehave(every={"hang": {"step": 2}})
    ran = check(project)
    assert ran.verdict == "error"
    assert "did not end within 3 s (policy.limits.launch_seconds) and was cancelled" in ran.report["sentence"]
    assert cluster.jobs == []


def test_a_queue_that_does_not_move_shows_as_one_and_ends_at_its_own_limit(
    project: Project, cluster: Cluster, repository: Path
) -> None:
    blocker = cluster.ask("sbatch", "--parsable", "--exclusive", "--output=/dev/null", "--wrap=sleep 600").strip()
    try:
        product = start(project, repository, "--slurm-option", "queue_seconds=4")
        assert product.wait(60) == 3
        told = (project.folder / "err.txt").read_text()
        assert "still waited in Slurm's queue (Resources) after 4 s (--slurm-option queue_seconds)" in told
    finally:
        cluster.ask("scancel", blocker)
        wait_until(lambda: blocker not in cluster.jobs)


def test_a_waiting_job_is_told_to_who_watches(project: Project, cluster: Cluster, tmp_path: Path) -> None:
    from tests.execute.launching import request_in
    from validator.execute.interpreter import find_interpreter
    from validator.execute.kit import surround
    from validator.execute.slurm import SlurmExecutor
    from validator.execute.slurm_options import SlurmOptions

    blocker = cluster.ask("sbatch", "--parsable", "--exclusive", "--output=/dev/null", "--wrap=sleep 4").strip()
    wait_until(lambda: launching(cluster) == [blocker])
    executor = SlurmExecutor(SlurmOptions(), 1, "cpu", tmp_path / "node")
    surroundings = surround(tmp_path / "kit", find_interpreter(str(project.double.python)), None, {}, {})
    request = request_in(tmp_path)
    request.scratch.mkdir()
    reasons: list[str] = []
    executor.launch(
        request, surroundings, log=request.scratch / "log.txt", limit_seconds=30, on_wait=reasons.append
    )  # fmt: skip
    assert any("waits in Slurm's queue" in reason for reason in reasons)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ("partition=nowhere", "Slurm refused the job"),
        ("partition=short", "Slurm refused the job"),
        ("gres=gpu:7", "Slurm refused the job"),
    ],
)
def test_what_slurm_refuses_is_one_sentence(project: Project, cluster: Cluster, option: str, sentence: str) -> None:
    ran = check(project, "--slurm-option", option)
    assert ran.code == 3
    assert sentence in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("option", ["comment=x", "tasks_per_node=0", "output=/tmp/x", "Partition=main"])
def test_what_is_no_option_is_refused(project: Project, cluster: Cluster, option: str) -> None:
    ran = check(project, "--slurm-option", option)
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_ranks_that_do_not_share_out_are_refused(project: Project, cluster: Cluster) -> None:
    ran = check(project, "--slurm-option", "tasks_per_node=3", "--slurm-option", "overcommit=")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "2 ranks of a node do not share out among 3 tasks" in ran.err


def test_gpus_of_an_option_arrive(project: Project, cluster: Cluster, tmp_path: Path) -> None:
    """What Slurm grants reaches the launch."""
    from validator.execute.slurm_task import GRANTED

    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nenv > {tmp_path}/seen\nexec {project.double.python} "$@"\n')
    script.chmod(0o755)
    project.check("--slurm", "--slurm-option", "gres=gpu:2", "--python", str(script))
    jobs = cluster.ask("scontrol", "show", "jobs", "--oneliner").splitlines()
    assert "gres:gpu:2" in jobs[-1] or "gres/gpu:2" in jobs[-1] or "gpu=2" in jobs[-1]
    seen = dict(line.partition("=")[::2] for line in (tmp_path / "seen").read_text().splitlines())
    assert seen[GRANTED[0]] == "0,1"


def test_a_product_that_is_killed_leaves_a_job_that_the_next_start_cancels(
    project: Project, cluster: Cluster, repository: Path
) -> None:
    project.double.misbehave(every={"hang": {"step": 2}})
    product = start(project, repository)
    wait_until(lambda: launching(cluster))
    left = launching(cluster)
    product.kill()
    product.wait()
    project.double.misbehave()
    assert project.record_golden().code == 0
    ran = check(project)
    assert ran.verdict == "pass"
    assert left[0] not in cluster.jobs
    assert "JobState=RUNNING" not in cluster.ask("scontrol", "show", "job", left[0])


def test_ctrl_c_cancels_the_job(project: Project, cluster: Cluster, repository: Path) -> None:
    project.double.misbehave(every={"hang": {"step": 2}})
    product = start(project, repository)
    wait_until(lambda: launching(cluster))
    product.send_signal(signal.SIGINT)
    assert product.wait(60) == 130
    assert cluster.jobs == []


def test_without_slurm_it_is_one_sentence(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = check(project)
    assert (ran.code, ran.err.count("\n")) == (3, 1)
    assert "squeue is not installed here" in ran.err


@pytest.mark.timeout(400)
def test_real_training_as_two_tasks_has_the_shipped_goldens_bits_and_a_fault_is_caught(
    cluster: Cluster, repository: Path, tmp_path: Path
) -> None:
    from validator.cli import main

    pipeline = repository / "pipelines" / "nemotron-cpu.yaml"
    file = tmp_path / "report.json"
    options = [str(pipeline), "--golden", str(repository / "golden"), "--json", str(file), "--slurm"]
    options += ["--slurm-option", "tasks_per_node=2"]
    code = main(["check", *options, "--out", str(tmp_path / "run")])
    told = json.loads(file.read_text())
    assert (code, told["verdict"]) == (0, "pass"), told["sentence"]
    code = main(["check", *options, "--out", str(tmp_path / "faulty"), "--switch", "fault=reduction-order-by-time"])
    told = json.loads(file.read_text())
    assert code == 1, told["sentence"]
    assert told["verdict"] == "nondeterministic"


@pytest.mark.timeout(600)
def test_a_fault_of_the_catalogue_is_caught_on_real_training_through_slurm(
    cluster: Cluster, repository: Path, tmp_path: Path
) -> None:
    """Two ranks as two tasks; the micro-batches of one step in another order."""
    from validator.cli import main

    file = tmp_path / "selftest.json"
    pipeline = repository / "pipelines" / "nemotron-cpu.yaml"
    where = ["--slurm", "--slurm-option", "tasks_per_node=2", "--out", str(tmp_path / "run")]
    what = ["--fault", "micro-batch-order", "--no-localise", "--golden", str(repository / "golden")]
    code = main(["selftest", str(pipeline), *what, *where, "--json", str(file)])
    told = json.loads(file.read_text())
    assert (code, told["clean"]["holds"]) == (0, True), told["clean"]["sentence"]
    (fault,) = told["faults"]
    assert fault["outcome"] == "caught_and_named", fault
    assert fault["found"].startswith("step:3 ")
