"""The description that the double judges by is cut from the one that GitHub publishes."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.github.double.description import FILE, problem_of
from tests.github.openapi.reduce import FOLDER, OPERATIONS, rendered

CHECK_RUNS = "/repos/o/r/check-runs"


def marks(number: int) -> list[dict[str, object]]:
    one = {"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "failure", "message": "m"}
    return [one] * number


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({"name": "a", "head_sha": "b"}, None),
        ({"name": "a"}, "'head_sha' is a required property"),
        ({"name": "a", "head_sha": "b", "status": "done"}, "'done' is not one of"),
        (
            {"name": "a", "head_sha": "b", "output": {"title": "t", "summary": "s", "annotations": marks(50)}},
            None,
        ),
        (
            {"name": "a", "head_sha": "b", "output": {"title": "t", "summary": "s", "annotations": marks(51)}},
            "maxItems",
        ),
    ],
)
def test_it_takes_what_github_takes(body: dict[str, object], wrong: str | None) -> None:
    found = problem_of("POST", CHECK_RUNS, {}, json.dumps(body).encode())
    assert (found is None) if wrong is None else (wrong in str(found))


def test_a_path_that_there_is_not_is_no_request() -> None:
    assert "PathNotFound" in str(problem_of("GET", "/repos/o/r/check_runs", {}, b""))


def test_it_holds_every_operation_that_is_used() -> None:
    assert set(json.loads(FILE.read_text())["paths"]) == set(OPERATIONS)


@pytest.mark.system
def test_it_is_what_github_publishes(tmp_path: Path) -> None:
    version = json.loads((FOLDER / "package.json").read_text())["dependencies"]["@octokit/openapi"]
    command = ["npm", "pack", "--silent", f"@octokit/openapi@{version}"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=240)
    (archive,) = tmp_path.glob("*.tgz")
    with tarfile.open(archive) as opened:
        member = opened.extractfile("package/generated/api.github.com.json")
        assert member is not None
        whole = json.loads(member.read())
    assert rendered(whole) == FILE.read_text()
