"""Setting a repository up, and saying what is missing in one."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.github.hub import NAME, Hub
from tests.project import Project, Ran

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOOLS = Path(sys.executable).parent


def init(project: Project, *words: str) -> Ran:
    return project.run("init", "--product", "tools/validator", "--commit", COMMIT, "--owners", "@team/training", *words)


def tool(*words: str, cwd: Path) -> str:
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_what_is_written_is_sound(project: Project) -> None:
    project.pipeline.unlink()
    ran = init(project)
    assert ran.code == 0, ran.err
    folder = project.folder
    workflows = sorted((folder / ".github" / "workflows").glob("*.yml"))
    assert [path.stem for path in workflows] == ["check", "nightly", "publish", "rebaseline"]
    for path in workflows:
        assert f"tools/validator/.github/workflows/{path.name}@{COMMIT}" in path.read_text()
        assert "@PRODUCT@" not in path.read_text()
        tool(str(TOOLS / "check-jsonschema"), "--builtin-schema", "vendor.github-workflows", str(path), cwd=folder)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    tool(str(TOOLS / "actionlint"), *map(str, workflows), cwd=folder)
    said = tool(
        str(TOOLS / "zizmor"), "--offline", "--persona", "pedantic", "--no-progress", "--color", "never",
        *map(str, workflows), cwd=folder,
    )  # fmt: skip
    assert "No findings to report" in said
    owners = (folder / ".github" / "CODEOWNERS").read_text()
    for place in ("/golden/", "/pipelines/", "/containers/", "/.github/"):
        assert f"{place} @team/training" in owners
    assert project.run("pipeline", "validate", "first").code == 0


def test_nothing_that_is_there_is_overwritten(project: Project) -> None:
    there = project.folder / ".github" / "CODEOWNERS"
    there.parent.mkdir()
    there.write_text("* @me\n")
    ran = init(project)
    assert "kept     .github/CODEOWNERS" in ran.out
    assert there.read_text() == "* @me\n"
    assert not (project.folder / "pipelines" / "first.yaml").exists()
    assert "written" not in init(project).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--commit", "v1"), "--commit is 'v1'; accepted is a commit in full"),
        (("--product", "nobody"), "--product is 'nobody'; accepted is OWNER/NAME"),
        (("--owners", "team"), "--owners is 'team'; accepted are @user"),
        (("--folder", "nowhere"), "nowhere is no folder"),
    ],
)
def test_what_cannot_be_is_one_sentence(project: Project, words: tuple[str, ...], sentence: str) -> None:
    ran = init(project, *words)
    assert ran.code == 2
    assert sentence in ran.err


def content(text: str) -> dict[str, str]:
    return {"content": base64.b64encode(text.encode()).decode(), "encoding": "base64"}


def whole(path: str) -> dict[str, object]:
    """Settings of a repository in which nothing is missing."""
    rules = [
        {"type": "pull_request", "parameters": {"require_code_owner_review": True}},
        {
            "type": "required_status_checks",
            "parameters": {"required_status_checks": [{"context": "validator", "integration_id": 4711}]},
        },
    ]
    return {
        path: {"default_branch": "main"},
        **{
            f"{path}/contents/.github/workflows/{name}.yml": content("")
            for name in ("check", "publish", "rebaseline", "nightly")
        },
        f"{path}/contents/.github/CODEOWNERS": content("/golden/ @a\n/pipelines/ @a\n/containers/ @a\n/.github/ @a\n"),
        f"{path}/rules/branches/main": rules,
        f"{path}/environments/launch-unreviewed": {"protection_rules": [{"type": "required_reviewers"}]},
        f"{path}/environments/launch-reviewed": {"protection_rules": []},
        f"{path}/environments/publish": {"deployment_branch_policy": {"protected_branches": True}},
        f"{path}/actions/permissions/workflow": {"default_workflow_permissions": "read"},
        f"{path}/actions/permissions/fork-pr-contributor-approval": {"approval_policy": "all_external_contributors"},
        "/orgs/team/actions/runner-groups": {"runner_groups": [{"name": "gpu", "restricted_to_workflows": True}]},
    }


def doctor(hub: Hub) -> Ran:
    ran = hub.project.run("doctor", "--github")
    assert hub.double.bad == []
    return ran


def test_a_repository_that_is_set_up_misses_nothing(hub: Hub) -> None:
    hub.double.state.settings = whole(f"/repos/{NAME}")
    ran = doctor(hub)
    assert (ran.code, "missing " in ran.out.replace("0 missing", "")) == (0, False), ran.out
    assert "13 fine, 0 missing, 0 not to be seen" in ran.out


@pytest.mark.parametrize(
    ("place", "value", "sentence"),
    [
        ("/environments/launch-unreviewed", {"protection_rules": []}, "waits for nobody"),
        ("/environments/publish", {"deployment_branch_policy": None}, "open to every branch"),
        ("/rules/branches/main", [], "main does not require 'validator'"),
        ("/contents/.github/CODEOWNERS", content("/golden/ @a\n"), "nobody owns /pipelines/, /containers/, /.github/"),
        ("/actions/permissions/workflow", {"default_workflow_permissions": "write"}, "may write by default"),
        ("/contents/.github/workflows/publish.yml", None, "publish.yml"),
    ],
)
def test_what_is_missing_is_named(hub: Hub, place: str, value: object, sentence: str) -> None:
    settings = whole(f"/repos/{NAME}")
    if value is None:
        del settings[f"/repos/{NAME}{place}"]
    else:
        settings[f"/repos/{NAME}{place}"] = value
    hub.double.state.settings = settings
    ran = doctor(hub)
    assert ran.code == 3
    (line,) = [line for line in ran.out.splitlines() if line.startswith("missing")][:1]
    assert sentence in line


def test_what_may_not_be_seen_is_not_called_missing(hub: Hub) -> None:
    settings = whole(f"/repos/{NAME}")
    del settings["/orgs/team/actions/runner-groups"]
    hub.double.state.settings = settings
    ran = doctor(hub)
    assert ran.code == 0
    assert "unknown  runner group" in ran.out
