"""Check runs at the double of GitHub: their life, their buttons, and what goes wrong on the way."""

from __future__ import annotations

import pytest

from tests.service import payloads
from tests.service.hub import Hub
from validator.service.tables import State


@pytest.fixture
def asked(hub: Hub) -> Hub:
    """A pull request whose check is waiting."""
    number, sha = hub.pull()
    hub.deliver("pull_request", payloads.pull_request(sha, number))
    return hub


def test_queued_then_in_progress_with_how_far_it_is(asked: Hub) -> None:
    asked.round("publishing")
    (run,) = asked.check_runs()
    assert (run["name"], run["status"], run["external_id"]) == ("validator / tiny", "queued", asked.key_of_job())
    assert run["details_url"] == "http://127.0.0.1:8080/jobs/1"
    asked.round("jobs")
    asked.double.workflow_runs[0]["status"] = "in_progress"
    asked.due()
    asked.round("jobs")
    asked.due()
    asked.round("publishing")
    (run,) = asked.check_runs()
    assert run["status"] == "in_progress"
    assert "The workflow runs" in run["output"]["summary"]
    assert asked.job()["check_run"] == run["id"]


def test_progress_is_told_now_and_then_and_an_end_at_once(asked: Hub) -> None:
    asked.round("publishing")
    asked.round("jobs")
    writes = len(asked.double.writes())
    asked.round("publishing")
    assert len(asked.double.writes()) == writes
    asked.deliver("pull_request", payloads.pull_request("0" * 40, asked.job()["pull_request"], "closed"))
    asked.due()
    asked.round("jobs")
    asked.round("publishing")
    (run,) = asked.check_runs()
    assert (run["status"], run["conclusion"]) == ("completed", "cancelled")


def test_a_job_that_the_machinery_lost_is_a_failure_of_its_own_kind_and_can_be_run_again(asked: Hub) -> None:
    for _ in range(12):
        asked.due()
        asked.round("jobs")
        for run in asked.double.workflow_runs:
            run.update(status="completed", conclusion="failure")
    asked.round("publishing")
    (found,) = asked.check_runs()
    assert asked.job()["state"] == State.FAILED
    assert (found["conclusion"], found["output"]["title"]) == ("failure", "The machinery failed")
    assert [action["identifier"] for action in found["actions"]] == ["run_again"]


@pytest.mark.parametrize("trouble", ["drop after", "502"])
def test_a_check_run_whose_answer_was_lost_is_not_made_twice(asked: Hub, trouble: str) -> None:
    asked.double.trouble = lambda method, path, _: trouble if method == "POST" and path.endswith("check-runs") else None
    asked.round("publishing")
    assert asked.job()["publication"] != ""
    asked.double.trouble = lambda *_: None
    asked.due()
    asked.round("publishing")
    assert len(asked.check_runs()) == 1
    assert asked.job()["publication"] == ""


def test_github_that_is_away_changes_nothing_but_the_time(asked: Hub) -> None:
    asked.double.trouble = lambda *_: "503"
    for _ in range(3):
        asked.due()
        asked.round("publishing")
    assert asked.check_runs() == []
    asked.double.trouble = lambda *_: None
    asked.due()
    asked.round("publishing")
    assert [run["status"] for run in asked.check_runs()] == ["queued"]


def test_a_rate_limit_is_waited_for_without_holding_up_the_loop(asked: Hub) -> None:
    asked.double.trouble = lambda *_: "secondary rate limit"
    asked.round("publishing")
    before = len(asked.double.requests)
    asked.round("publishing")
    assert len(asked.double.requests) == before


def test_a_commit_that_github_does_not_know_is_told_on_the_page(hub: Hub) -> None:
    hub.deliver("pull_request", payloads.pull_request("1" * 40))
    hub.round("publishing")
    assert "No commit found" in hub.job()["publication"]


def test_an_installation_token_that_expires_is_renewed(asked: Hub) -> None:
    asked.double.requests_a_token = 2
    for _ in range(4):
        asked.due()
        asked.round("publishing")
        asked.round("jobs")
    assert len(asked.check_runs()) == 1
    assert len(asked.double.tokens) >= 2
