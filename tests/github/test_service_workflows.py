"""The service dispatches check.yml: that pipeline on that commit, and the result comes back under that key."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.github.double.server import APP, Double
from tests.github.hub import NAME
from tests.github.runner import Actions
from tests.github.team import TINY, Team
from tests.service import payloads
from tests.service.double.github import ServiceDouble
from tests.service.running import Running
from validator.service.database import Database
from validator.service.tokens import Tokens

pytestmark = [pytest.mark.system, pytest.mark.timeout(500)]


@pytest.fixture
def kind_of_double() -> type[Double]:
    """One that knows dispatches and runs."""
    return ServiceDouble


@pytest.fixture
def service(team: Team, tmp_path: Path) -> Iterator[Running]:
    """The service beside the team's repository, which dispatches check.yml; the publishing workflow may push to it."""
    place = tmp_path / "service"
    place.mkdir()
    database = f"sqlite:///{place / 'service.db'}"
    variables = {
        "VALIDATOR_DATA": str(place / "data"), "VALIDATOR_DATABASE": database,
        "VALIDATOR_PROJECT": str(team.hub.project.folder), "VALIDATOR_WEBHOOK_SECRET": payloads.SECRET,
        "VALIDATOR_GITHUB_URL": team.hub.double.url, "VALIDATOR_GITHUB_APP": str(APP),
        "VALIDATOR_GITHUB_PRIVATE_KEY": team.key, "VALIDATOR_ENGINE": "actions", "VALIDATOR_WORKFLOW": "check.yml",
        "VALIDATOR_POLL_SECONDS": "0.2",
    }  # fmt: skip
    made = Running(place, variables)
    made.start()
    tokens = Database(database)
    team.secrets["VALIDATOR_PUSH_TOKEN"] = Tokens(tokens).create("the publishing workflow", NAME, 3600.0)
    tokens.dispose()
    team.variables["VALIDATOR_SERVICE_URL"] = made.url
    yield made
    made.stop()


def double_of(team: Team) -> ServiceDouble:
    assert isinstance(team.hub.double, ServiceDouble)
    return team.hub.double


def dispatched(team: Team, service: Running, number: int = 1) -> dict[str, Any]:
    """What the service handed over last, once it has handed over so many."""
    double = double_of(team)
    service.until("a dispatch", lambda: len(double.dispatched) >= number)
    workflow, body = double.dispatched[-1]
    assert (workflow, body["ref"]) == ("check.yml", "main")
    inputs: dict[str, Any] = body["inputs"]
    return inputs


def publish(team: Team, checked: Actions, result: str, **changes: Any) -> Actions:
    """publish.yml for the dispatched run, as GitHub describes it."""
    state = team.hub.double.state
    state.artifacts.clear()
    state.artifact_names.clear()
    for folder in sorted(checked.artifacts.glob("validator-result-*")):
        team.hub.upload(folder, folder.name)
    run = {
        "id": 77, "run_attempt": 1, "html_url": "https://github.example/run", "event": "workflow_dispatch",
        "head_sha": team.repo.git("rev-parse", "main"), "head_branch": "main", "display_title": checked.name,
        "conclusion": result,
    }  # fmt: skip
    actions = team.run("publish", "workflow_run", {"action": "completed", "workflow_run": run | changes})
    actions.run()
    return actions


def test_that_pipeline_on_that_commit_and_the_result_comes_back(team: Team, service: Running) -> None:
    sha = team.pins("2.15.0")
    pull = team.hub.pull()
    main = team.repo.git("rev-parse", "main")
    event = payloads.pull_request(sha, pull["number"], base=main)
    assert service.deliver("pull_request", event) == 202
    inputs = dispatched(team, service)
    assert (inputs["pipeline"], inputs["commit"], inputs["image"]) == ("tiny", sha, "")

    environments: list[str] = []

    def approve(environment: str) -> bool:
        environments.append(environment)
        return True

    team.approve = approve
    checked = team.run("check", "workflow_dispatch", {}, **inputs)
    assert checked.name == f"tiny on {sha} for {inputs['key']}"
    assert checked.run() == "failure"  # these bits are not the golden's
    assert environments == ["launch-unreviewed"]
    assert [job.name for job in checked.jobs["launch"]] == ["launch tiny"]
    assert [folder.name for folder in checked.artifacts.glob("validator-result-*")] == ["validator-result-tiny"]

    published = publish(team, checked, "failure")
    assert published.result("publish") == "success", published.log()
    assert f"belongs to the service's job {inputs['key']}" in published.log()
    service.until("the result counts", lambda: service.job(1)["verdict"])
    job = service.job(1)
    assert (job["state"], job["verdict"], job["commit"]) == ("ended", "changed", sha)
    runs = team.hub.double.state.runs_of

    def shown(name: str) -> Any:
        return next((run for run in runs(sha, name) if run["status"] == "completed"), None)

    assert service.until("the check run", lambda: shown(TINY))["conclusion"] == "failure"
    assert service.until("the aggregate", lambda: shown("validator"))["conclusion"] == "failure"
    assert runs(main, None) == []
    assert publish(team, checked, "failure").result("publish") == "success"  # pushing it again changes nothing
    assert len(service.job(1)["results"]) == 1


def test_a_commit_that_is_not_named_in_full_launches_nothing(team: Team) -> None:
    sha = team.pins("2.14.2")
    team.hub.pull()
    for commit in (sha[:12], "change", f"{sha} x", "--upload-pack=x"):
        checked = team.run("check", "workflow_dispatch", {}, key="", pipeline="tiny", commit=commit, image="")
        assert checked.run() == "failure"
        assert (checked.result("launch"), checked.result("aggregate")) == ("skipped", "failure")


def test_another_branchs_workflow_speaks_for_no_job(team: Team, service: Running) -> None:
    """Whoever may push a branch may dispatch its own check.yml, under any name."""
    sha = team.pins("2.15.0")
    pull = team.hub.pull()
    base = team.repo.git("rev-parse", "main")
    assert service.deliver("pull_request", payloads.pull_request(sha, pull["number"], base=base)) == 202
    inputs = dispatched(team, service)
    other = {**inputs, "commit": team.repo.git("rev-parse", "main")}
    checked = team.run("check", "workflow_dispatch", {}, **other)
    assert checked.run() == "success", checked.log()  # main's own bits, under the pull request's key
    forged = publish(team, checked, "success", head_branch="change", head_sha=sha)
    assert forged.result("publish") == "success", forged.log()
    assert "which no workflow_dispatch on the default branch is about" in forged.log()
    assert service.job(1)["results"] == []
    assert all(run["conclusion"] is None for run in team.hub.double.state.runs_of(sha, None))


def test_another_branch_cannot_judge_itself(team: Team) -> None:
    team.pins("2.15.0")
    team.hub.pull()
    checked = team.run("check", "workflow_dispatch", {}, pipeline="tiny")
    checked.github = {**checked.github, "ref_name": "change", "sha": team.repo.git("rev-parse", "HEAD")}
    assert (checked.run(), checked.result("launch")) == ("failure", "skipped")
    assert "change cannot judge itself" in checked.log()
