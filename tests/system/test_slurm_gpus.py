"""Launches of CUDA computations through a real one-node Slurm with two GPUs that are none: asked for, shared out,
watched.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from tests.execute.launching import request_in
from tests.execute.nvml_binding import install, python_that_hits
from tests.project import Project
from tests.system.slurm_cluster import Cluster
from validator.errors import LaunchError
from validator.execute.interpreter import find_interpreter
from validator.execute.kit import surround
from validator.execute.launch import Ending
from validator.execute.nvml_watch import no_memory_errors
from validator.execute.slurm import SlurmExecutor
from validator.execute.slurm_options import SlurmOptions

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


def launch(folder: Path, python: Path, name: str, *, tasks: int = 1, **others: str) -> Ending:
    """Launch two ranks on GPUs as the job validator-``name``, with memory errors watched."""
    executor = SlurmExecutor(SlurmOptions(tasks, others=others), 1, "cuda", folder / "node")
    surroundings = surround(folder / "kit", find_interpreter(str(python)), None, {}, {})
    scratch = folder / name
    request = request_in(folder, device="cuda", scratch=scratch, trajectory=scratch / "trajectory")
    scratch.mkdir()
    with no_memory_errors(request.device, executor=executor, folder=scratch):
        return executor.launch(request, surroundings, log=scratch / "log.txt", limit_seconds=30).ended


def python_that_tells(project: Project, folder: Path) -> Path:
    """The double, which leaves its variables in seen-RANK of its task. Of several tasks, each ends at once: the double
    has no rendezvous.
    """
    script = folder / "python-that-tells"
    tell = f'[ "$1" = -m ] && env > {folder}/seen-$6 && [ "$4" != 1 ] && exit\nexec {project.double.python} "$@"\n'
    script.write_text(f"#!/bin/sh\n{tell}")
    script.chmod(0o755)
    return script


def seen(folder: Path) -> list[str]:
    """CUDA_VISIBLE_DEVICES of each task in order."""
    found = []
    for file in sorted(folder.glob("seen-*")):
        variables = dict(line.partition("=")[::2] for line in file.read_text().splitlines())
        found.append(variables["CUDA_VISIBLE_DEVICES"])
    return found


@pytest.mark.parametrize(("tasks", "visible"), [(1, ["0,1"]), (2, ["0", "1"])])
def test_a_cuda_computation_gets_the_gpus_that_it_asks_for(
    tasks: int, visible: list[str], project: Project, cluster: Cluster, tmp_path: Path
) -> None:
    name = f"gpus-of-{tasks}"
    assert launch(tmp_path, python_that_tells(project, tmp_path), name, tasks=tasks) is Ending.COMPLETED
    jobs = cluster.ask("scontrol", "show", "jobs", "--oneliner").splitlines()
    (job,) = [job for job in jobs if f"JobName=validator-{name} " in job]
    assert re.search(r"TresPerNode=gres[:/]gpu:2\b", job), job
    assert seen(tmp_path) == visible


def test_too_few_gpus_for_a_nodes_tasks_are_one_sentence(project: Project, cluster: Cluster, tmp_path: Path) -> None:
    sentence = r"failed: Slurm granted a node 1 of the 2 GPUs that its 2 tasks need; change --slurm-option \(job"
    with pytest.raises(LaunchError, match=sentence):
        launch(tmp_path, python_that_tells(project, tmp_path), "too-few", tasks=2, gres="gpu:1")


def test_gpus_that_slurm_binds_to_each_task_stay_its_own(project: Project, cluster: Cluster, tmp_path: Path) -> None:
    launch(tmp_path, python_that_tells(project, tmp_path), "bound", tasks=2, gpus_per_task="1")
    assert sorted(seen(tmp_path)) in (["0", "1"], ["0", "0"])  # the second one below control groups


def test_memory_errors_of_a_node_are_a_hardware_fault(
    project: Project, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = install(tmp_path, monkeypatch)
    assert launch(tmp_path, project.double.python, "sound") is Ending.COMPLETED
    node = socket.gethostname().partition(".")[0]
    fault = rf"^Hardware fault: GPU 1 \(NVIDIA H200\) counted 1 uncorrected .* on node {re.escape(node)} during"
    with pytest.raises(LaunchError, match=fault):
        launch(tmp_path, python_that_hits(tmp_path, project.double.python, hit), "faulty")
