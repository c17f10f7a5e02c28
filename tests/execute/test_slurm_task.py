"""Which devices each task of a job launches with."""

from __future__ import annotations

from typing import Any

import pytest

from validator.execute.slurm_task import devices


def visible(plan: dict[str, Any], granted: str | None, on_node: str | None = None) -> list[str]:
    """CUDA_VISIBLE_DEVICES of a node's tasks in order, where Slurm gave all of them the same."""
    told = {"CUDA_VISIBLE_DEVICES": granted, "SLURM_GPUS_ON_NODE": on_node}
    variables = {name: value for name, value in told.items() if value is not None}
    tasks = range(plan["tasks_per_node"])
    return [devices(plan, variables | {"SLURM_LOCALID": str(task)})["CUDA_VISIBLE_DEVICES"] for task in tasks]


def plan(ranks: int, tasks: int, device: str = "cuda", **environment: str) -> dict[str, Any]:
    return {"device": device, "ranks": ranks, "tasks_per_node": tasks, "environment": environment}


@pytest.mark.parametrize(
    ("ranks", "granted", "expected"),
    [
        (1, "0,1", ["0", "1"]),
        (1, "4,5,6", ["4", "5"]),
        (2, "0,1,2,3", ["0,1", "2,3"]),
        (1, "MIG-a,MIG-b", ["MIG-a", "MIG-b"]),
    ],
)
def test_tasks_of_a_node_share_out_what_it_was_granted(ranks: int, granted: str, expected: list[str]) -> None:
    assert visible(plan(ranks, 2), granted, str(len(granted.split(",")))) == expected
    assert visible(plan(ranks, 2), granted) == expected


def test_where_slurm_does_not_say_which_the_first_ones_are_shared_out() -> None:
    assert visible(plan(2, 2), None) == ["0,1", "2,3"]
    assert visible(plan(1, 2, CUDA_VISIBLE_DEVICES="6,7"), None) == ["6", "7"]


@pytest.mark.parametrize("on_node", ["2", None])
def test_gpus_that_slurm_bound_to_each_task_stay(on_node: str | None) -> None:
    """Below control groups each task counts its own from 0."""
    assert visible(plan(1, 2), "0", on_node) == ["0", "0"]


@pytest.mark.parametrize(("granted", "few"), [("0", 1), ("", 0)])
def test_too_few_gpus_are_one_sentence(granted: str, few: int) -> None:
    sentence = rf"^validator: Slurm granted a node {few} of the 2 GPUs that its 2 tasks need; change --slurm-option\.$"
    with pytest.raises(SystemExit, match=sentence):
        visible(plan(1, 2), granted, "1")


def test_a_task_that_has_the_node_to_itself_keeps_what_slurm_granted() -> None:
    assert visible(plan(2, 1), "2,3", "2") == ["2,3"]
    assert devices(plan(2, 1), {"SLURM_LOCALID": "0", "SLURM_JOB_ID": "7"}) == {}


def test_ranks_on_the_cpu_get_no_device() -> None:
    assert devices(plan(1, 2, "cpu"), {"SLURM_LOCALID": "1"}) == {}
