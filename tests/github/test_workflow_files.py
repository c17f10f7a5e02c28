"""Every workflow file is looked at by actionlint, zizmor and GitHub's schema, here and in the templates of init."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TOOLS = Path(sys.executable).parent

#: Findings of zizmor that are ignored, with the reason beside each in the file.
EXPLAINED = {"publish.yml": 1}


def run(*words: str) -> str:
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}  # actionlint looks for shellcheck there
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_actionlint_with_shellcheck() -> None:
    assert (TOOLS / "shellcheck").exists()
    run(str(TOOLS / "actionlint"), *map(str, WORKFLOWS))


def test_zizmor_pedantic_has_no_finding_that_is_not_explained() -> None:
    said = run(
        str(TOOLS / "zizmor"),
        "--offline",
        "--persona",
        "pedantic",
        "--no-progress",
        "--color",
        "never",
        *map(str, WORKFLOWS),
    )
    assert "No findings to report" in said
    ignored = re.search(r"\((\d+) ignored", said)
    assert ignored is not None
    assert int(ignored[1]) == sum(EXPLAINED.values())
    for path in WORKFLOWS:
        comments = [line for line in path.read_text().splitlines() if "zizmor: ignore" in line]
        assert len(comments) == EXPLAINED.get(path.name, 0)
        assert all(" -- " in comment for comment in comments)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_the_workflow_schema(path: Path) -> None:
    run(str(TOOLS / "check-jsonschema"), "--builtin-schema", "vendor.github-workflows", str(path))


def test_the_scripts_of_the_workflows() -> None:
    run(str(TOOLS / "shellcheck"), *(str(path) for path in sorted((ROOT / "scripts" / "github").iterdir())))


def steps(document: dict[str, Any]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    return [(name, job, step) for name, job in document["jobs"].items() for step in job.get("steps", ())]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_what_every_workflow_keeps_to(path: Path) -> None:
    document = yaml.safe_load(path.read_text())
    assert document["permissions"] == {}
    for name, job in document["jobs"].items():
        assert "permissions" in job, name
        assert job["timeout-minutes"] <= 480, name
    for _, _, step in steps(document):
        if "uses" in step:
            assert re.search(r"@[0-9a-f]{40}$", step["uses"]), step["uses"]
        if "actions/checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
        assert "${{" not in step.get("run", ""), step["run"]


def test_unreviewed_code_meets_no_secret_and_no_right_to_write() -> None:
    for name in ("check", "nightly"):
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text()
        assert "secrets." not in text
        assert "write" not in re.sub(r"#.*", "", text)
    document = yaml.safe_load((ROOT / ".github" / "workflows" / "rebaseline.yml").read_text())
    for name, job in document["jobs"].items():
        if name != "commit":
            assert set(job["permissions"].values()) <= {"read"}
            assert "secrets." not in str(job)


def test_publishing_checks_out_the_default_branch_only() -> None:
    document = yaml.safe_load((ROOT / ".github" / "workflows" / "publish.yml").read_text())
    refs = [step["with"]["ref"] for _, _, step in steps(document) if "actions/checkout" in step.get("uses", "")]
    assert refs
    assert all("head_sha" not in ref and "default_branch" in ref for ref in refs)


def test_a_launch_runs_only_after_the_approval_and_the_head_is_read_again() -> None:
    document = yaml.safe_load((ROOT / ".github" / "workflows" / "check.yml").read_text())
    jobs = document["jobs"]
    assert "approve" in jobs["launch"]["needs"]
    assert "launch-unreviewed" in jobs["approve"]["environment"]
    for name in ("approve", "launch"):
        scripts = [step.get("run", "") for step in jobs[name]["steps"]]
        position = next(index for index, script in enumerate(scripts) if "refuse-another-head" in script)
        assert not any("launch" in script or "install" in script for script in scripts[:position])
    assert jobs["aggregate"]["if"] == "always()"
    assert set(jobs["aggregate"]["needs"]) == set(jobs) - {"aggregate"}
