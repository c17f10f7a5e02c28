"""The workflows' own steps, executed in real git repositories: from the pull request to the check run and the golden.

The launch double stands in for Megatron: it comes as the wheel of a package that the change bumps, is built, locked,
installed offline and launched as a real one would be.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.github.team import ROOT, TINY, Team
from tests.github.test_images import DOCKER

pytestmark = [pytest.mark.system, pytest.mark.timeout(500)]


def test_a_bump_that_keeps_the_bits_is_green(team: Team) -> None:
    team.pins("2.14.2")
    pull = team.hub.pull()
    result, actions = team.check(pull)
    assert result == "success", actions.log()
    assert "constraints.txt changed" in actions.log()
    runs = team.publish(pull, actions, result)
    assert {name: run["conclusion"] for name, run in runs.items()} == {"validator": "success", TINY: "success"}
    assert "2.14.2" in runs[TINY]["output"]["summary"]
    assert team.hub.comments == []


def test_docs_alone_launch_nothing_and_the_aggregate_is_green(team: Team) -> None:
    team.change("docs", **{"docs/page.md": "words"})
    pull = team.hub.pull()
    result, actions = team.check(pull)
    assert result == "success", actions.log()
    assert {name: actions.result(name) for name in actions.jobs} == {
        "plan": "success", "build": "skipped", "image": "skipped", "approve": "skipped", "launch": "skipped",
        "aggregate": "success",
    }  # fmt: skip
    runs = team.publish(pull, actions, result)
    assert {name: run["conclusion"] for name, run in runs.items()} == {"validator": "success"}


def test_a_plan_that_fails_and_a_launch_that_is_missing_fail_the_aggregate(team: Team) -> None:
    team.change("a broken pipeline", **{"pipelines/tiny.yaml": "name: tiny\n"})
    result, actions = team.check(team.hub.pull())
    assert result == "failure"
    assert actions.result("aggregate") == "failure"
    assert actions.result("launch") == "skipped"
    team.pins("9.9.9")
    team.repo.git("checkout", "-q", "main", "--", "pipelines")
    team.repo.commit("a version that there is not")
    result, actions = team.check(team.hub.pull("other"))
    assert {name: actions.result(name) for name in ("plan", "build", "launch", "aggregate")} == {
        "plan": "success", "build": "failure", "launch": "skipped", "aggregate": "failure",
    }  # fmt: skip


def test_a_change_of_numerics_cannot_loosen_its_own_check(team: Team) -> None:
    text = team.hub.project.pipeline.read_text()
    text = text.replace("golden: required, repeatability: required", "golden: off, repeatability: advisory")
    text = text.replace("launch_seconds: 120", "launch_seconds: 2000")
    text += (
        "  waivers:\n  - gate: resume\n    leaf: rng/cpu\n    reason: looks harmless\n"
        "    link: https://example.com/1\n    expires: 2099-01-01\n"
        f'    seen: [{{restore: 3, ranks: [0], moments: "setup:3", observed: "{"0" * 32}"}}]\n'
    )
    team.change("bump, and a looser policy", **{"constraints.txt": "torch==2.15.0\n", "pipelines/tiny.yaml": text})
    pull = team.hub.pull()
    result, actions = team.check(pull)
    assert result == "failure"
    runs = team.publish(pull, actions, result)
    summary = runs[TINY]["output"]["summary"]
    assert runs[TINY]["conclusion"] == "failure"
    assert runs[TINY]["output"]["title"] == "changed: repeatable, but not the golden's bits"
    assert "step 4, rank 0, parameters" in summary
    policy = summary[summary.index("Policy changed here") :]
    for key in ("gates.golden", "gates.repeatability", "launch&#95;seconds", "waivers.rng/cpu"):
        assert key.replace("&#95;", "_") in re.sub("&#95;", "_", policy), key
    assert [(each["path"], each["start_line"]) for each in runs[TINY]["annotations"]] == [("constraints.txt", 1)]
    (comment,) = team.hub.comments
    assert "Policy changed here" in comment


def test_nothing_of_a_fork_runs_before_the_approval_of_that_commit(team: Team) -> None:
    marker = team.hub.project.folder.parent / "ran"
    evil = f"import pathlib; pathlib.Path({str(marker)!r}).touch()\n"
    files = {
        "constraints.txt": "torch==2.15.0\n", "validator/__init__.py": evil, "validator/__main__.py": evil,
        "sitecustomize.py": evil, "usercustomize.py": evil, "setup.py": evil, "json.py": evil, "yaml.py": evil,
        "scripts/github/launch": f"#!/bin/sh\ntouch {marker}\n",
    }  # fmt: skip
    first = team.change("from a fork", **files)
    pull = team.hub.pull("patch", fork="mallory/train")
    asked: list[str] = []

    def refuse(environment: str) -> bool:
        asked.append(environment)
        return False

    team.approve = refuse
    result, actions = team.check(pull)
    assert result == "waiting"
    assert asked == ["launch-unreviewed"]
    assert "launch" not in actions.jobs
    assert not marker.exists()

    # Approved, and pushed again in between: the approval was of another commit.
    team.change("something else", **{"docs.md": "words"})
    team.repo.git("push", "-q", "-f", "origin", f"HEAD:refs/pull/{pull['number']}/head")
    team.approve = lambda environment: True
    again = team.run("check", "pull_request", {"pull_request": {**pull, "head": {**pull["head"], "sha": first}}})
    assert again.run() == "failure"
    assert again.result("approve") == "failure"
    assert again.result("launch") == "skipped"
    assert again.result("aggregate") == "failure"
    assert "superseded, so nothing is launched" in again.log()
    assert not marker.exists()


def test_a_changed_dockerfile_becomes_the_image_that_is_launched(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for Docker that builds; no engine is there to launch in, and that is no pass."""
    programs = tmp_path / "docker"
    programs.mkdir()
    (programs / "docker").write_text(DOCKER.format(folder=programs))
    (programs / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    text = team.hub.project.pipeline.read_text() + "  triggers: {dockerfile: containers/train/Dockerfile}\n"
    team.repo.git("checkout", "-q", "main")
    team.change("an image", **{"pipelines/tiny.yaml": text, "containers/train/Dockerfile": "FROM scratch\n"})
    team.repo.git("push", "-q", "origin", "main")
    team.repo.git("checkout", "-q", "-B", "change")
    team.change("another base", **{"containers/train/Dockerfile": "FROM other\n"})
    _, actions = team.check(team.hub.pull())
    assert {name: actions.result(name) for name in actions.jobs} == {
        "plan": "success", "build": "success", "image": "success", "approve": "success", "launch": "failure",
        "aggregate": "failure",
    }  # fmt: skip
    assert (actions.artifacts / "validator-images" / "containers_train_Dockerfile.tar").read_text() == "FROM other\n"
    assert "Docker" in actions.log()[actions.log().index("== launch tiny") :]


def test_a_build_that_was_tampered_with_is_refused(team: Team, tmp_path: Path) -> None:
    build = tmp_path / "build"
    (build / "candidate").mkdir(parents=True)
    (build / "product").mkdir()
    (build / "candidate" / "a.whl").write_bytes(b"x")
    script = ROOT / "scripts" / "github" / "install-candidate"
    subprocess.run(f"cd {build} && sha256sum candidate/a.whl > wheels.lock", shell=True, check=True)  # noqa: S602
    digest = subprocess.run(
        ["sha256sum", str(build / "wheels.lock")], capture_output=True, text=True, check=True
    ).stdout.split()[0]

    def install(given: str) -> str:
        done = subprocess.run(
            [str(script), str(build), str(tmp_path / "environment")], capture_output=True, text=True, check=False,
            env={"DIGEST": given, "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert done.returncode != 0
        return done.stdout + done.stderr

    assert "and the build job made" in install("0" * 64)
    (build / "candidate" / "b.whl").write_bytes(b"y")
    assert "a file that its lock does not name" in install(digest)
    (build / "candidate" / "b.whl").unlink()
    (build / "candidate" / "a.whl").write_bytes(b"z")
    assert "FAILED" in install(digest)


def test_a_launch_has_the_loopback_and_nothing_else() -> None:
    script = ROOT / "scripts" / "github" / "offline"
    look = "import os, socket; s = socket.create_server(('127.0.0.1', 0)); print(sorted(os.listdir('/sys/class/net')))"
    done = subprocess.run([str(script), sys.executable, "-c", look], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    reach = "import socket; socket.create_connection(('192.0.2.1', 80), 3)"
    done = subprocess.run([str(script), sys.executable, "-c", reach], capture_output=True, text=True, check=False)
    assert "Network is unreachable" in done.stderr


def test_a_registrys_new_digest_is_seen(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "github" / "new-images"
    new, old = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\necho {new}\n")
    docker.chmod(0o755)
    (tmp_path / "images.txt").write_text(f"# watched\nregistry.example/team/train:26.11@{old}\n")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    command = [str(script), str(tmp_path / "images.txt")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == f"registry.example/team/train@{new}\n"
    (tmp_path / "images.txt").write_text(f"registry.example/team/train:26.11@{new}\n")
    assert subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout == ""
