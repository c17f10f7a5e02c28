"""What a job is asked for, and what its tasks are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.execute.launching import request_in
from validator.execute.launch import Surroundings
from validator.execute.slurm_job import COUNT_EVERY, SlurmJob
from validator.execute.slurm_options import SlurmOptions


def job(
    folder: Path, *, device: str = "cuda", nodes: int = 1, tasks: int = 1, ranks: int = 4,
    variables: dict[str, str] | None = None, options: dict[str, str] | None = None, **request: Any,
) -> SlurmJob:  # fmt: skip
    """A launch with so many ``ranks`` and ``tasks`` a node."""
    surroundings = Surroundings(Path("/env/bin/python"), folder / "kit", None, variables or {})
    wanted = request_in(folder, device=device, ranks=ranks * nodes, **request)
    chosen = SlurmOptions(tasks_per_node=tasks, others=options or {})
    return SlurmJob(chosen, nodes, device, None, folder, folder / "log.txt", surroundings, wanted)


def asked(made: SlurmJob) -> dict[str, Any]:
    """Options of sbatch beside those that submitit has names for."""
    return dict(made._parameters(60.0)["additional_parameters"])


@pytest.mark.parametrize(
    ("nodes", "tasks", "cpus_per_task"), [(1, 1, 4), (1, 2, 2), (1, 4, 1), (2, 1, 4), (2, 2, 2)]
)  # fmt: skip
def test_a_cuda_computation_asks_for_one_gpu_for_each_rank_of_a_node(
    nodes: int, tasks: int, cpus_per_task: int, tmp_path: Path
) -> None:
    made = job(tmp_path, nodes=nodes, tasks=tasks)
    assert {name: value for name, value in asked(made).items() if name.startswith("gpu")} == {"gpus-per-node": 4}
    assert asked(made)["cpus-per-task"] == cpus_per_task
    parameters = made._parameters(60.0)
    assert (parameters["nodes"], parameters["ntasks_per_node"]) == (nodes, tasks)


def test_a_computation_on_the_cpu_asks_for_no_gpu(tmp_path: Path) -> None:
    assert not any(name.startswith(("gpu", "gres")) for name in asked(job(tmp_path, device="cpu", tasks=2)))


@pytest.mark.parametrize("option", ["gres", "gpus", "gpus_per_task", "gpus_per_node"])
def test_an_option_that_asks_for_gpus_is_the_only_one(option: str, tmp_path: Path) -> None:
    found = {name for name in asked(job(tmp_path, options={option: "gpu:4"})) if name.startswith(("gpu", "gres"))}
    assert found == {option.replace("_", "-")}


def test_the_job_that_looks_at_a_node_asks_for_one_gpu(tmp_path: Path) -> None:
    surroundings = Surroundings(Path("/env/bin/python"), tmp_path / "kit", None, {})
    options = SlurmOptions(tasks_per_node=2)
    made = SlurmJob(options, 2, "cuda", None, tmp_path, tmp_path / "log.txt", surroundings, None)
    assert asked(made)["gpus-per-node"] == 1


def test_gpus_that_the_caller_sees_are_none_of_a_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    environment = job(tmp_path)._plan()["environment"]
    assert "CUDA_VISIBLE_DEVICES" not in environment  # type: ignore[operator]
    own = job(tmp_path, variables={"CUDA_VISIBLE_DEVICES": "1"})._plan()["environment"]
    assert own["CUDA_VISIBLE_DEVICES"] == "1"  # type: ignore[index]


def test_gpus_of_a_timed_launch_are_not_looked_at_meanwhile(tmp_path: Path) -> None:
    assert job(tmp_path)._plan()["count_every"] == COUNT_EVERY
    assert job(tmp_path, measure="time")._plan()["count_every"] is None
