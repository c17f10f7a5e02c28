"""``--plugin``: a file of one's own inside real launches, on every rank."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.end_to_end.command import assert_error, assert_names_its_log, check, copy_of

pytestmark = pytest.mark.slow

#: Moves one element of rank 1's first gradient by one unit in the last place at step 3, and writes down what it sees.
PLUGIN = """\
import json

import torch

from validator.workload.plugins import Launch, StepResult


def install(launch: Launch) -> None:
    seen = {"rank": launch.rank, "world_size": launch.world_size, "seed": launch.request.seed, "moments": []}

    @launch.on_setup
    def on_setup() -> None:
        seen["hidden_size"] = launch.arguments.hidden_size
        seen["chunks"] = len(launch.modules)
        seen["shards"] = [[name, shard.start, shard.end] for name, shard in launch.shards()]

    @launch.before_step
    def before_step(step: int) -> None:
        seen["moments"].append(f"before_step {step}")

    @launch.before_update
    def before_update(step: int) -> None:
        seen["moments"].append(f"before_update {step}")
        if step == 3 and launch.rank == 1:
            name, shard = next(launch.shards())
            seen["changed"] = name
            gradient = shard.gradient
            gradient[0] = torch.nextafter(gradient[0], torch.tensor(float("inf")))

    @launch.after_step
    def after_step(step: int, result: StepResult) -> None:
        seen["moments"].append(f"after_step {step}")
        seen["losses"] = sorted(result.losses)

    @launch.on_end
    def on_end() -> None:
        file = launch.request.scratch / f"seen-{launch.rank}.json"
        file.write_text(json.dumps(seen))
"""


#: One launch is enough: what a plugin changes is compared with the golden.
ONE_LAUNCH = {"repeatability: required, resume: required}": "repeatability: off, resume: off}"}


def test_a_plugin_acts_on_every_rank_and_what_it_changes_is_found(tmp_path: Path) -> None:
    file = tmp_path / "one_ulp.py"
    file.write_text(PLUGIN)
    pipeline = copy_of("nemotron-cpu", tmp_path, ONE_LAUNCH)
    ran = check(tmp_path, pipeline, "--plugin", str(file))
    assert (ran.code, ran.verdict) == (1, "changed"), ran.out
    assert ran.launches == ["reference"]
    assert ran.report["stamps"] == [f"--plugin one_ulp.py (SHA-256 {hashlib.sha256(PLUGIN.encode()).hexdigest()[:12]})"]

    first, second = (
        json.loads((ran.folder / "launches" / "reference" / f"seen-{rank}.json").read_text()) for rank in (0, 1)
    )
    assert [(seen["rank"], seen["world_size"], seen["chunks"]) for seen in (first, second)] == [(0, 2, 1), (1, 2, 1)]
    assert first["hidden_size"] == int(ran.argument("hidden_size"))
    assert first["losses"][0] == "lm loss"
    steps = int(ran.argument("train_iters"))
    moments = [
        f"{moment} {step}" for step in range(1, steps + 1) for moment in ("before_step", "before_update", "after_step")
    ]
    assert first["moments"] == second["moments"] == moments
    assert "changed" not in first
    assert second["changed"] == second["shards"][0][0]

    spread = ran.spread("golden")
    assert spread["step:3", "gradients"] == 1
    assert {moment for moment, _ in spread}.isdisjoint({"setup:0", "entry:0", "step:1", "step:2"})


def test_a_plugin_that_raises_is_an_error_with_its_own_line(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    lines = (
        "def install(launch):",
        "    def count(step):",
        "        return 1 // (2 - step)",
        "    launch.before_update(count)",
    )
    file.write_text("\n".join(lines))
    ran = check(tmp_path, copy_of("nemotron-cpu", tmp_path, ONE_LAUNCH), "--plugin", str(file))
    by_zero = "ZeroDivisionError: integer division or modulo by zero"
    assert_error(ran, f"The launch failed: the plugin broken.py failed in line 3 (count): {by_zero}; see ")
    assert_names_its_log(ran)
    log = (ran.folder / "launches" / "reference" / "log.txt").read_text()
    assert "return 1 // (2 - step)" in log  # the whole traceback stands there
