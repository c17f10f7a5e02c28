"""What a runner tells of the check that it carries out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.project import Project
from tests.service.double.receiver import receiving
from validator.service.engines.runner import FailedError, _follow, _prepare
from validator.service.engines.work import Work

ROOT = Path(__file__).parents[2]

SAYS_TWO_LINES_THEN_NOTHING = """
import sys, time
print("[1/4] completed after 16 s", file=sys.stderr, flush=True)
print("[2/4] starts fresh, saves step 3", file=sys.stderr, flush=True)
time.sleep(4)
print("the end", file=sys.stderr)
sys.exit(4)
"""


class Heard:
    """In the pusher's place: remembers when it was told what."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.lines: list[tuple[str, float]] = []

    def progress(self, line: str) -> None:
        self.lines.append((line, time.monotonic() - self.started))


def test_the_newest_line_is_told_while_the_check_is_silent(tmp_path: Path) -> None:
    work, heard = Work(tmp_path), Heard()
    code, last = _follow(work, [sys.executable, "-c", SAYS_TWO_LINES_THEN_NOTHING], tmp_path, heard)  # type: ignore[arg-type]
    assert (code, last) == (4, "the end")
    told = [line for line, _ in heard.lines]
    assert told[:2] == ["[1/4] completed after 16 s", "[2/4] starts fresh, saves step 3"]


def order(**values: Any) -> dict[str, Any]:
    return {"repository": "team/train", "commit": "1" * 40, "image": "", "pipeline": "tiny", **values}


def program(folder: Path, text: str) -> str:
    file = folder / "prepare"
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return str(file)


def test_what_a_preparation_prints_chooses_what_is_checked(tmp_path: Path) -> None:
    said = 'echo "$VALIDATOR_REPOSITORY $VALIDATOR_COMMIT $VALIDATOR_PIPELINE [$VALIDATOR_IMAGE] $1" >said'
    lines = "echo installing; echo python=/a/bin/python; echo megatron=/b; echo shell=/bin/sh; echo 'out=/etc'"
    command = f"{program(tmp_path, f'{said}; {lines}')} 'one word'"
    assert _prepare(Work(tmp_path), order(prepare=command)) == ["--python", "/a/bin/python", "--megatron", "/b"]
    assert (tmp_path / "said").read_text() == f"team/train {'1' * 40} tiny [] one word\n"
    assert _prepare(Work(tmp_path), order(prepare="")) == []


def test_a_preparation_that_fails_is_a_failure_of_the_machinery(tmp_path: Path) -> None:
    with pytest.raises(FailedError, match="VALIDATOR_WORKER_PREPARE ended with exit code 3; see ") as failed:
        _prepare(Work(tmp_path), order(prepare=program(tmp_path, "echo python=/a; exit 3")))
    assert not failed.value.final
    with pytest.raises(FailedError, match="VALIDATOR_WORKER_PREPARE cannot be run: No such file") as failed:
        _prepare(Work(tmp_path), order(prepare=str(tmp_path / "nowhere")))
    assert failed.value.final


def test_a_runner_checks_what_was_prepared_and_pushes_it(project: Project, tmp_path: Path) -> None:
    """The whole of a runner's life, as Slurm starts it: only the service is played."""
    work = Work(tmp_path / "work")
    work.folder.mkdir()
    prepare = program(tmp_path, f"echo python={project.double.python}")
    with receiving() as received:
        about = order(prepare=prepare, options="", url=received.url, project=str(project.folder), attempt="key-1")
        work.write(work.order, about)
        work.write(work.token, "vpt_token", mode=0o600)
        command = [sys.executable, "-m", "validator.service.engines.runner", str(work.folder)]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = received.results
    assert json.loads(result["report.json"])["verdict"] == "no_baseline"
    assert {name.split("/")[1] for name in result if name.startswith("launches/")} >= {
        "reference",
        "repeat",
        "resume-1",
    }
    assert {token for _, _, token, _ in received.requests} == {"Bearer vpt_token"}
    assert {path for method, path, _, _ in received.requests if method == "PUT"} == {"/api/v1/attempts/key-1/result"}
    assert work.read(work.end) == {"sentence": "The result counts: pass.", "final": False}
    assert not work.token.exists()
