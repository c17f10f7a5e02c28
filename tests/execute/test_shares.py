"""Which devices launches get that run side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.double.double import Double
from tests.execute.launching import request_in
from validator.errors import UsageError
from validator.execute import shares
from validator.execute.interpreter import find_interpreter
from validator.execute.kit import surround
from validator.execute.local import LocalExecutor, free_port
from validator.execute.sandbox import Inside, settings
from validator.pipeline import Limits


def test_every_launch_gets_gpus_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "visible_gpus", lambda: ("3", "5", "6", "7", "9"))
    assert shares.shares("cuda", 2, 2, "this machine") == (("3", "5"), ("6", "7"))
    with pytest.raises(UsageError, match=r"needs 6 GPUs for launches of 2 ranks each.* has 5; accepted is at most"):
        shares.shares("cuda", 2, 3, "this machine")
    with pytest.raises(UsageError, match="leave it out"):
        shares.shares("cuda", 4, 2, "this machine")


def test_gpus_are_those_that_the_caller_may_see() -> None:
    assert shares.visible_gpus({"CUDA_VISIBLE_DEVICES": "GPU-a, GPU-b"}) == ("GPU-a", "GPU-b")
    assert shares.visible_gpus({"CUDA_VISIBLE_DEVICES": ""}) == ()


def test_cores_are_counted_and_not_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shares, "available_cores", lambda: tuple("0123"))
    assert shares.shares("cpu", 2, 2, "this machine") == ((), ())
    with pytest.raises(UsageError, match="needs 6 CPU cores.* and this machine has 4; .* at most --parallel 2"):
        shares.shares("cpu", 2, 3, "this machine")
    with pytest.raises(UsageError, match="1 rank each"):
        shares.shares("cpu", 1, 5, "this machine")


def test_a_launch_sees_its_own_gpus_only(double: Double, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable reaches the launch's process."""
    monkeypatch.setattr(shares, "visible_gpus", lambda: ("4", "5"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5")
    seen: list[str] = []
    for executor in LocalExecutor().side_by_side("cuda", 1, 2):
        folder = tmp_path / f"launch-{len(seen)}"
        request = request_in(folder)
        request.scratch.mkdir(parents=True)
        surroundings = surround(folder / "kit", find_interpreter(str(double.python)), None, {}, {})
        executor.launch(request, surroundings, log=request.scratch / "log.txt", limit_seconds=20)
        seen.append(json.loads(request.claims_file.read_text())["variables"]["CUDA_VISIBLE_DEVICES"])
    assert seen == ["4", "5"]


def test_a_container_asks_for_gpus_by_name() -> None:
    chosen = settings(Inside(["python"], {}, gpus=2, gpu_names=("4", "5")), Limits(), lock_memory=False)
    (wanted,) = chosen["device_requests"]
    assert wanted["DeviceIDs"] == ["4", "5"]
    assert not wanted["Count"]
    (any_two,) = settings(Inside(["python"], {}, gpus=2), Limits(), lock_memory=False)["device_requests"]
    assert any_two["Count"] == 2


def test_no_port_is_given_twice_in_a_row() -> None:
    ports = [free_port() for _ in range(50)]
    assert len(set(ports)) == len(ports)
