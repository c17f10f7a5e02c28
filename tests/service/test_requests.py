"""The re-baseline button and /validate: who may, and what is started."""

from __future__ import annotations

import pytest

from tests.service import payloads
from tests.service.hub import Hub

OWNERS = "* @everyone\n/golden/ @team/numerics @olga\n"


@pytest.fixture
def shown(hub: Hub) -> Hub:
    """A pull request with a check run; golden/ has owners."""
    number, sha = hub.pull()
    hub.deliver("pull_request", payloads.pull_request(sha, number))
    hub.round("publishing")
    hub.double.files[".github/CODEOWNERS"] = OWNERS
    hub.double.members["team/numerics"] = {"ned"}
    return hub


def press(hub: Hub, person: str) -> tuple[str, str]:
    """A press of the button; gives state and sentence of what came of it."""
    (run,) = hub.check_runs()
    answer = hub.deliver(
        "check_run", payloads.check_run(run["id"], run["external_id"], "requested_action", "rebaseline", person)
    )
    assert answer.status_code == 202
    hub.due()
    hub.round("requests")
    request = hub.job()["requests"][-1]
    return request["state"], request["sentence"]


@pytest.mark.parametrize("person", ["olga", "Olga", "ned"])
def test_an_owner_of_golden_starts_the_workflow(shown: Hub, person: str) -> None:
    assert press(shown, person) == ("done", f"Re-baselining was started by {person}.")
    ((workflow, body),) = shown.double.dispatched
    job = shown.job()
    assert (workflow, body["ref"]) == ("rebaseline.yml", "main")
    assert body["inputs"]["pull-request"] == str(job["pull_request"])
    assert body["inputs"]["pipelines"] == "tiny"
    assert f"@{person}" in body["inputs"]["reason"]
    assert job["commit"][:12] in body["inputs"]["reason"]


@pytest.mark.parametrize("person", ["ann", "everyone", "numerics", "team"])
def test_anyone_else_is_refused_and_told_so_on_the_check_run(shown: Hub, person: str) -> None:
    assert press(shown, person) == ("refused", f"{person} may not re-baseline: no owner of golden/ by CODEOWNERS.")
    assert shown.double.dispatched == []
    shown.due()
    shown.round("publishing")
    assert f"{person} may not re-baseline" in shown.check_runs()[0]["output"]["summary"]


def test_without_codeowners_nobody_may(shown: Hub) -> None:
    shown.double.files.clear()
    state, sentence = press(shown, "olga")
    assert state == "refused"
    assert "no CODEOWNERS" in sentence


def test_a_pull_request_that_has_moved_on_is_not_rebaselined(shown: Hub) -> None:
    newer = shown.push()
    state, sentence = press(shown, "olga")
    assert (state, newer[:12] in sentence, shown.double.dispatched) == ("refused", True, [])


def test_pressed_twice_it_is_started_once(shown: Hub) -> None:
    press(shown, "olga")
    (run,) = shown.check_runs()
    again = payloads.check_run(run["id"], run["external_id"], "requested_action", "rebaseline", "olga") | {"more": 1}
    assert shown.deliver("check_run", again).json()["outcome"] == "duplicate"
    shown.due()
    shown.round("requests")
    assert len(shown.double.dispatched) == 1


def test_a_dispatch_whose_answer_was_lost_is_not_made_twice(shown: Hub) -> None:
    shown.double.trouble = lambda method, path, _: "drop after" if path.endswith("/dispatches") else None
    assert press(shown, "olga")[0] == "starting"
    shown.double.trouble = lambda *_: None
    shown.due()
    shown.round("requests")
    assert shown.job()["requests"][0]["state"] == "done"
    assert len(shown.double.dispatched) == 1


def test_github_away_is_waited_for(shown: Hub) -> None:
    shown.double.trouble = lambda *_: "502"
    assert press(shown, "olga")[0] == "asked"
    shown.double.trouble = lambda *_: None
    shown.due()
    shown.round("requests")
    assert shown.job()["requests"][0]["state"] == "done"


def validate(hub: Hub, text: str, number: int, person: str = "ann", identity: int = 1) -> list[str]:
    """A comment; gives the commits of all jobs then."""
    hub.deliver("issue_comment", payloads.comment(text, number, identity, person))
    hub.due()
    hub.round("requests")
    hub.round("plans")
    return [job["commit"] for job in hub.jobs()]


def test_a_maintainer_has_a_forks_commit_checked_by_naming_it(hub: Hub) -> None:
    hub.repo.write("constraints.txt", "torch==2.15.0\n")
    number, sha = hub.pull(fork="stranger/train")
    hub.double.permissions = {"ann": "write"}
    assert validate(hub, "/validate", number) == []
    assert validate(hub, f"/validate {'0' * 40}", number, identity=2) == []
    assert validate(hub, f"/validate {sha[:7]}", number, identity=3) == []
    assert validate(hub, f"/validate {sha[:12]}", number, "stranger", identity=4) == []
    assert validate(hub, f"please /validate {sha}", number, identity=5) == []
    assert validate(hub, f"/validate {sha[:12]}", number, identity=6) == [sha]


def test_a_comment_on_a_pull_request_of_the_repository_needs_no_commit(hub: Hub) -> None:
    hub.repo.write("constraints.txt", "torch==2.15.0\n")
    number, sha = hub.pull()
    hub.double.permissions = {"ann": "write"}
    assert validate(hub, "/validate\nplease", number) == [sha]


def test_missed_deliveries_are_found_and_taken_in_once(hub: Hub) -> None:
    number, sha = hub.pull()
    hub.double.missed("pull_request", "guid-missed-1", payloads.pull_request(sha, number))
    hub.double.missed("push", "guid-missed-2", {"ref": "x"})
    hub.double.missed("pull_request", "guid-taken-3", payloads.pull_request("2" * 40, 9), status=202)
    hub.round("deliveries")
    assert [job["commit"] for job in hub.jobs()] == [sha]
    hub.round("deliveries")
    assert len(hub.jobs()) == 1
    assert {row["guid"]: row["outcome"] for row in hub.client.get("/api/v1/deliveries").json()} == {
        "guid-missed-1": "accepted", "guid-missed-2": "ignored",
    }  # fmt: skip


def test_a_missed_delivery_that_github_redelivers_is_a_duplicate(hub: Hub) -> None:
    number, sha = hub.pull()
    payload = payloads.pull_request(sha, number)
    hub.double.missed("pull_request", "guid-missed-1", payload)
    hub.round("deliveries")
    assert hub.deliver("pull_request", payload, "guid-missed-1").status_code == 200
    assert len(hub.jobs()) == 1
