"""What is superseded, taken up again, and run once more."""

from __future__ import annotations

from tests.service import payloads
from tests.service.hub import Hub
from tests.service.payloads import commit


def states(hub: Hub) -> dict[str, str]:
    """States by commit, shortened."""
    names = {commit(word): word for word in ("a", "b", "c", "d")}
    return {names[job["commit"]]: job["state"] for job in hub.jobs()}


def test_a_newer_commit_of_a_pull_request_supersedes(hub: Hub) -> None:
    hub.deliver("pull_request", payloads.pull_request(commit("a"), at="2026-11-29T10:00:00Z"))
    hub.deliver("pull_request", payloads.pull_request(commit("b"), at="2026-11-29T10:00:01Z"))
    assert states(hub) == {"a": "cancelled", "b": "waiting"}
    assert hub.job(1)["sentence"] == f"Superseded by {commit('b')[:12]}."


def test_an_older_commit_that_is_delivered_late_does_not_supersede(hub: Hub) -> None:
    hub.deliver("pull_request", payloads.pull_request(commit("b"), at="2026-11-29T10:00:01Z"))
    hub.deliver("pull_request", payloads.pull_request(commit("a"), at="2026-11-29T10:00:00Z"))
    assert states(hub) == {"a": "cancelled", "b": "waiting"}


def test_another_pull_request_is_left_alone(hub: Hub) -> None:
    hub.deliver("pull_request", payloads.pull_request(commit("a")))
    hub.deliver("pull_request", payloads.pull_request(commit("b"), number=8, at="2026-11-29T10:00:01Z"))
    assert states(hub) == {"a": "waiting", "b": "waiting"}


def test_pushed_back_to_an_older_commit_it_is_taken_up_again(hub: Hub) -> None:
    for word, second in (("a", 0), ("b", 1), ("a", 2)):
        hub.deliver("pull_request", payloads.pull_request(commit(word), at=f"2026-11-29T10:00:0{second}Z"))
    assert states(hub) == {"a": "waiting", "b": "cancelled"}


def test_closed_and_reopened(hub: Hub) -> None:
    hub.deliver("pull_request", payloads.pull_request(commit("a"), at="2026-11-29T10:00:00Z"))
    hub.deliver("pull_request", payloads.pull_request(commit("a"), action="closed", at="2026-11-29T10:00:01Z"))
    assert states(hub) == {"a": "cancelled"}
    hub.deliver("pull_request", payloads.pull_request(commit("a"), action="reopened", at="2026-11-29T10:00:02Z"))
    assert states(hub) == {"a": "waiting"}


def test_on_the_default_branch_what_runs_goes_on_and_what_waits_is_dropped(hub: Hub) -> None:
    hub.deliver("check_suite", payloads.check_suite(commit("a"), at="2026-11-29T10:00:00Z"))
    hub.round("jobs")
    hub.deliver("check_suite", payloads.check_suite(commit("b"), at="2026-11-29T10:00:01Z"))
    hub.deliver("check_suite", payloads.check_suite(commit("c"), at="2026-11-29T10:00:02Z"))
    assert states(hub) == {"a": "running", "b": "cancelled", "c": "waiting"}


def test_a_branch_that_is_neither_default_nor_a_pull_request_is_ignored(hub: Hub) -> None:
    assert hub.deliver("check_suite", payloads.check_suite(commit("a"), "wip")).json()["outcome"] == "ignored"


def test_a_merge_group_and_its_end(hub: Hub) -> None:
    hub.deliver("merge_group", payloads.merge_group(commit("a")))
    hub.deliver("merge_group", payloads.merge_group(commit("b"), "gh-readonly-queue/main/pr-8-def"))
    hub.deliver("merge_group", payloads.merge_group(commit("a"), action="destroyed"))
    assert states(hub) == {"a": "cancelled", "b": "waiting"}


def test_a_newer_generation_of_a_merge_queue_supersedes(hub: Hub) -> None:
    """A queue makes a pull request's group anew on another base, and says of the older one that it is destroyed."""
    old, new = (f"gh-readonly-queue/main/pr-7-{base * 40}" for base in "12")
    hub.deliver("merge_group", payloads.merge_group(commit("a"), old, at="2026-11-29T10:00:00Z"))
    hub.deliver("merge_group", payloads.merge_group(commit("b"), new, at="2026-11-29T10:00:01Z"))
    assert states(hub) == {"a": "cancelled", "b": "waiting"}
    hub.deliver("merge_group", payloads.merge_group(commit("a"), old, "destroyed"))
    assert states(hub) == {"a": "cancelled", "b": "waiting"}
    hub.deliver("merge_group", payloads.merge_group(commit("b"), new, "destroyed"))
    assert states(hub) == {"a": "cancelled", "b": "cancelled"}


def test_an_older_generation_that_is_delivered_late_does_not_supersede(hub: Hub) -> None:
    old, new = (f"gh-readonly-queue/main/pr-7-{base * 40}" for base in "12")
    hub.deliver("merge_group", payloads.merge_group(commit("b"), new, at="2026-11-29T10:00:01Z"))
    hub.deliver("merge_group", payloads.merge_group(commit("a"), old, at="2026-11-29T10:00:00Z"))
    assert states(hub) == {"a": "cancelled", "b": "waiting"}


def test_run_again_is_asked_for_once_a_check_run(hub: Hub) -> None:
    number, sha = hub.pull()
    hub.deliver("pull_request", payloads.pull_request(sha, number))
    hub.round()
    (run,) = hub.check_runs()
    while_it_runs = hub.deliver("check_run", payloads.check_run(run["id"], run["external_id"]))
    assert while_it_runs.json()["outcome"] == "duplicate"
    hub.double.end_run(hub.double.workflow_runs[0]["id"], "failure")
    hub.service.database.dispose()
    finish(hub)
    first = hub.deliver("check_run", payloads.check_run(run["id"], run["external_id"], "requested_action", "run_again"))
    second = hub.deliver("check_run", payloads.check_run(run["id"], run["external_id"], person="bob"))
    assert (first.json()["outcome"], second.json()["outcome"]) == ("accepted", "duplicate")
    assert [(job["action"], job["state"]) for job in hub.jobs()] == [("rerun", "waiting"), ("check", "cancelled")]


def test_a_button_of_nobody_and_a_check_run_of_nobody_are_ignored(hub: Hub) -> None:
    unknown = payloads.check_run(4, "0" * 64, "requested_action", "run_again")
    assert hub.deliver("check_run", unknown).json()["outcome"] == "ignored"
    strange = payloads.check_run(4, "0" * 64, "requested_action", "format_disk")
    assert hub.deliver("check_run", strange).json()["outcome"] == "ignored"


def finish(hub: Hub) -> None:
    """Close the pull request, so that its job is let go."""
    closed = payloads.pull_request(commit("z"), hub.job()["pull_request"], "closed")
    hub.deliver("pull_request", closed)
    hub.round("jobs")
    assert hub.job()["state"] == "cancelled"
