"""What is not about the newest commit of a change, or about no change at all."""

from __future__ import annotations

from typing import Any

import pytest

from tests.github.hub import Hub
from validator.github.supersede import entry_of

TINY = "validator / tiny"
OLD, NEW = "1" * 40, "2" * 40


def branch(pull: int, base: str, target: str = "main") -> str:
    return f"gh-readonly-queue/{target}/pr-{pull}-{base}"


def add(hub: Hub, number: int, name: str, status: str = "in_progress", event: str = "merge_group") -> dict[str, Any]:
    run = {"id": number, "head_branch": name, "status": status, "event": event, "conclusion": None}
    hub.double.state.runs.insert(0, run)
    return run


def group(hub: Hub, **values: Any) -> Any:
    """The event of the newest generation's run, whose base is main."""
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("in the queue")
    hub.push("group")
    name = branch(7, hub.repo.git("rev-parse", "main"))
    return hub.event(event="merge_group", head_branch=name, workflow_id=5, **values)


def test_older_generations_of_the_same_entry_are_cancelled_and_nothing_else(hub: Hub) -> None:
    old = [
        add(hub, 90, branch(7, OLD)),
        add(hub, 91, branch(7, NEW), "queued"),
        add(hub, 92, branch(7, OLD), "waiting"),
    ]
    others = [
        add(hub, 93, branch(8, OLD)), add(hub, 94, branch(7, OLD, "release")), add(hub, 95, "change"),
        add(hub, 96, branch(7, OLD), event="pull_request"), add(hub, 97, branch(7, OLD), "completed"),
        add(hub, 200, branch(7, OLD)),
    ]  # fmt: skip
    ran = hub.publish(event=group(hub, action="requested"))
    assert ran.code == 0, ran.err
    assert [run["conclusion"] for run in old] == ["cancelled"] * 3
    assert [run["conclusion"] for run in others] == [None] * len(others)
    assert ran.out.count("cancelled: run ") == 3
    assert "cancelled" not in hub.publish(event=group(hub, action="requested")).out


@pytest.mark.parametrize("action", ["in_progress", "completed"])
def test_only_a_new_run_cancels(hub: Hub, action: str) -> None:
    run = add(hub, 90, branch(7, OLD))
    hub.publish(event=group(hub, action=action))
    assert run["conclusion"] is None


def test_which_branches_are_a_queues() -> None:
    assert entry_of(branch(7, OLD)) == entry_of(branch(7, NEW)) == "gh-readonly-queue/main/pr-7"
    assert entry_of(branch(7, OLD, "release/1")) == "gh-readonly-queue/release/1/pr-7"
    for name in ("main", "gh-readonly-queue/main/pr-7", f"x/{branch(7, OLD)}", f"gh-readonly-queue/main/pr-x-{OLD}"):
        assert entry_of(name) == ""


def test_a_run_that_did_not_succeed_is_not_green_though_its_result_is(hub: Hub) -> None:
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    hub.pull()
    assert hub.check().verdict == "pass"
    hub.publish(str(hub.results / "tiny"), event=hub.event(conclusion="cancelled"))
    runs = hub.runs()
    assert (runs[TINY]["conclusion"], runs["validator"]["conclusion"]) == ("success", "failure")
    assert runs["validator"]["output"]["title"] == "Error: the run ended as cancelled"


def test_of_a_new_image_the_results_that_came_are_what_was_asked_for(hub: Hub) -> None:
    hub.repo.git("checkout", "-q", "main")
    assert hub.check().verdict == "pass"
    hub.publish(str(hub.results / "tiny"), event=hub.event(event="schedule", head_branch="main"))
    assert {name: run["conclusion"] for name, run in hub.runs().items()} == {"validator": "success", TINY: "success"}


def test_a_run_on_a_branch_of_its_own_choosing_is_published_nowhere(hub: Hub) -> None:
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    sha = hub.pull()["head"]["sha"]
    hub.repo.git("checkout", "-q", "main")
    ran = hub.publish(event=hub.event(event="workflow_dispatch", head_branch="change", head_sha=sha))
    assert "which no workflow_dispatch on the default branch is about" in ran.out
    assert hub.double.state.check_runs == []
