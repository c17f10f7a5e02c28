"""Real Megatron training, from the check against a base to the check run at GitHub."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.github.hub import Hub

ROOT = Path(__file__).parents[2]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_bump_checked_by_real_training_is_green_at_github(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repo.git("checkout", "-q", "main")
    name = "nemotron-cpu"
    shutil.copy(ROOT / "pipelines" / f"{name}.yaml", hub.project.folder / "pipelines")
    shutil.copytree(ROOT / "golden" / name, hub.project.goldens / name)
    shutil.rmtree(hub.project.goldens / "tiny")
    hub.project.pipeline.unlink()
    hub.repo.commit("a pipeline that trains")
    hub.push("main")
    hub.repo.git("checkout", "-q", "-B", "change")
    hub.repo.write("constraints.txt", "# looked at\ntorch==2.14.1\n")
    hub.repo.commit("a change without effect")
    hub.pull()
    out = hub.project.folder.parent / "out"
    ran = hub.project.run("check", name, "--base", "main", "--out", str(out))
    assert ran.code == 0, ran.out + ran.err
    assert hub.project.run("github", "pack", str(out), str(hub.results / name)).code == 0
    assert hub.publish(str(hub.results / name)).code == 0
    run = hub.runs()[f"validator / {name}"]
    assert (run["conclusion"], run["output"]["title"]) == ("success", "pass: every required gate holds")
    size = sum(path.stat().st_size for path in (hub.results / name).rglob("*"))
    assert size < 50 << 20
    assert hub.repo.git("status", "--porcelain") == ""
