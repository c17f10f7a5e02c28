"""The plugin that docs/plugins.md shows, in an image and through Slurm: real training, on the rank that it names."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.system.engine import ENVIRONMENT, Engine
from tests.system.slurm_cluster import Cluster
from validator.cli import main

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def one_ulp(repository: Path, folder: Path, *where: str) -> dict[str, Any]:
    """The report of a check with the plugin, of one launch against the shipped golden."""
    shown = (repository / "docs" / "plugins.md").read_text(encoding="utf-8")
    plugin = folder / "one_ulp.py"
    plugin.write_text(shown.partition("```python\n")[2].partition("```")[0], encoding="utf-8")
    text = (repository / "pipelines" / "nemotron-cpu.yaml").read_text(encoding="utf-8")
    gates = "repeatability: required, resume: required}"
    assert gates in text
    pipeline = folder / "nemotron-cpu.yaml"
    pipeline.write_text(text.replace(gates, "repeatability: off, resume: off}"), encoding="utf-8")
    report = folder / "report.json"
    words = ["--golden", str(repository / "golden"), "--json", str(report), "--out", str(folder / "run"), *where]
    code = main(["check", str(pipeline), "--plugin", str(plugin), *words])
    told: dict[str, Any] = json.loads(report.read_text())
    assert (code, told["verdict"]) == (1, "changed"), told["sentence"]
    log = (folder / "run" / "launches" / "reference" / "log.txt").read_text(encoding="utf-8")
    assert "step 10: gradient norm " in log
    shutil.rmtree(folder / "run")
    return told


def assert_one_gradient_of_step_3_moved(told: dict[str, Any]) -> None:
    (golden,) = [gate for gate in told["gates"] if gate["name"] == "golden"]
    rows = {(row["moment"], row["group"]): row for row in golden["spread"]}
    assert (rows["step:3", "gradients"]["differing"], rows["step:3", "gradients"]["ranks"]) == (1, 1)
    assert all(int(moment.partition(":")[2]) >= 3 for moment, _ in rows)
    assert told["stamps"][0].startswith("--plugin one_ulp.py (SHA-256 ")


def test_a_plugin_acts_in_an_image(engine: Engine, debian_image: str, repository: Path, tmp_path: Path) -> None:
    binds = [word for folder in ENVIRONMENT for word in ("--bind", str(folder))]
    told = one_ulp(repository, tmp_path, "--image", debian_image, "--python", sys.executable, *binds)
    assert_one_gradient_of_step_3_moved(told)


def test_a_plugin_acts_in_a_job(cluster: Cluster, repository: Path, tmp_path: Path) -> None:
    told = one_ulp(repository, tmp_path, "--slurm", "--slurm-option", "tasks_per_node=2")
    assert_one_gradient_of_step_3_moved(told)
