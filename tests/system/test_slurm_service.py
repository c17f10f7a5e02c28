"""The service's Slurm engine on a real one-node Slurm: an attempt runs, pushes its result, is found again, ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project
from tests.service.double.receiver import receiving
from tests.system.slurm_cluster import Cluster
from validator.service.engines.model import EngineError, Look, Order, Standing
from validator.service.engines.slurm import SlurmEngine

pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]


def order(number: int) -> Order:
    return Order("b" * 20 + f"-{number}", "team/train", None, "1" * 40, "tiny", "", 7, f"vpt_{number}")


def until(look: Callable[[], Look], standing: Standing, seconds: float = 60.0) -> list[Look]:
    """Everything that was seen until then, without repetitions."""
    seen: list[Look] = []
    deadline = time.monotonic() + seconds
    while not seen or seen[-1].standing is not standing:
        assert time.monotonic() < deadline, seen
        found = look()
        if not seen or seen[-1] != found:
            seen.append(found)
        time.sleep(0.1)
    return seen


def test_an_attempt_from_the_queue_to_its_result(project: Project, cluster: Cluster, tmp_path: Path) -> None:
    prepare = tmp_path / "prepare"
    prepare.write_text(f'#!/bin/sh\necho "commit=$VALIDATOR_COMMIT"\necho python={project.double.python}\n')
    prepare.chmod(0o755)
    with receiving() as received:
        about: dict[str, Any] = {"url": received.url, "project": str(project.folder), "options": ""}
        engine = SlurmEngine(tmp_path / "work", about | {"prepare": str(prepare)}, "--ntasks=1 --gres=gpu:1")
        assert engine.find(order(1), 0.0) is None
        number = engine.hand_over(order(1))
        assert engine.find(order(1), 0.0) == number  # what a service that was killed asks
        seen = until(lambda: engine.look(order(1), number), Standing.ENDED)
    assert Standing.RUNNING in [each.standing for each in seen]
    assert (seen[-1].sentence, seen[-1].final) == ("The result counts: pass.", False)
    (result,) = received.results
    report = json.loads(result["report.json"])
    assert (report["pipeline"], report["verdict"]) == ("tiny", "no_baseline")
    assert {token for _, _, token, _ in received.requests} == {"Bearer vpt_1"}
    engine.cancel(order(1), number)  # it has ended: no error


def test_a_cancelled_attempt_leaves_nothing_running(project: Project, cluster: Cluster, tmp_path: Path) -> None:
    about = {"url": "http://127.0.0.1:9", "project": str(project.folder), "options": "", "prepare": "sleep 120"}
    engine = SlurmEngine(tmp_path / "work", about, "--ntasks=1")
    number = engine.hand_over(order(2))
    until(lambda: engine.look(order(2), number), Standing.RUNNING)
    engine.cancel(order(2), number)
    deadline = time.monotonic() + 30
    while cluster.jobs:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert engine.look(order(2), number).standing in (Standing.LOST, Standing.ENDED)


def test_what_no_partition_takes_is_refused_in_one_sentence(cluster: Cluster, tmp_path: Path) -> None:
    engine = SlurmEngine(tmp_path / "work", {}, "--partition=nowhere")
    with pytest.raises(EngineError, match="sbatch failed: Batch job submission failed: Invalid partition name"):
        engine.hand_over(order(3))
