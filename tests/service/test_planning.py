"""Which jobs a change makes: those of the pipelines that it calls for, and the aggregate that says so."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update

from tests.github.double.state import Json
from tests.service import payloads
from tests.service.hub import Hub
from tests.service.payloads import commit
from validator.service.tables import Change


@pytest.fixture
def main(hub: Hub) -> str:
    """A base revision with two pipelines; the second looks at images and at one folder only. Gives its commit."""
    text = hub.project.pipeline.read_text().replace("name: tiny", "name: other")
    text += "  triggers: {paths: [kernels/**], images: [ghcr.io/team/train]}\n"
    hub.repo.write("pipelines/other.yaml", text)
    return hub.push("main")


def change(hub: Hub, branch: str = "change", **files: str) -> tuple[int, str]:
    """A pull request that writes these files."""
    hub.repo.git("checkout", "-q", "-B", branch, "main")
    for path, text in files.items():
        hub.repo.write(path, text)
    return hub.pull(branch)


def deliver(hub: Hub, pull: tuple[int, str], base: str, second: int = 0, action: str = "synchronize") -> Json:
    at = f"2026-11-29T10:00:{second:02}Z"
    answer = hub.deliver("pull_request", payloads.pull_request(pull[1], pull[0], action, at, base=base))
    assert answer.status_code == 202
    found: Json = answer.json()
    return found


def plan(hub: Hub) -> list[str]:
    """Pipelines of all jobs, once the plan is made and shown; newest first."""
    hub.round("plans")
    hub.round("aggregates")
    return [job["pipeline"] for job in hub.jobs()]


def aggregates(hub: Hub) -> list[dict[str, Any]]:
    return [run for run in hub.check_runs() if run["name"] == "validator"]


def test_only_what_the_change_calls_for_becomes_a_job(hub: Hub, main: str) -> None:
    pull = change(hub, **{"kernels/scan.py": "fast\n"})
    assert "is being worked out" in deliver(hub, pull, main)["detail"]
    assert hub.jobs() == []
    assert plan(hub) == ["other"]
    (run,) = aggregates(hub)
    assert (run["head_sha"], run["status"]) == (pull[1], "in_progress")
    assert "kernels/scan.py changed" in run["output"]["summary"]
    assert not (hub.project.folder / ".git" / "FETCH_HEAD").exists()


def test_where_nothing_is_called_for_the_aggregate_is_green_and_says_so(hub: Hub, main: str) -> None:
    pull = change(hub, **{"docs/page.md": "words\n"})
    deliver(hub, pull, main)
    assert plan(hub) == []
    (run,) = hub.check_runs()
    assert (run["name"], run["conclusion"], run["output"]["title"]) == ("validator", "success", "Nothing is called for")
    assert "Nothing is called for: no changed path" in run["output"]["summary"]


def test_a_finding_asks_for_action(hub: Hub, main: str) -> None:
    hub.repo.git("checkout", "-q", "-B", "change", "main")
    hub.repo.git("rm", "-q", "pipelines/other.yaml")
    deliver(hub, hub.pull(), main)
    assert plan(hub) == []
    (run,) = aggregates(hub)
    assert run["conclusion"] == "action_required"
    assert "removes the pipeline other" in run["output"]["summary"]


def test_the_aggregate_follows_its_jobs_to_the_worst_end(hub: Hub, main: str) -> None:
    pull = change(hub, **{"constraints.txt": "torch==2.15.0\n", "kernels/scan.py": "fast\n"})
    deliver(hub, pull, main)
    assert sorted(plan(hub)) == ["other", "tiny"]
    assert aggregates(hub)[0]["output"]["title"] == "2 of 2 pipelines not at an end"
    hub.round("jobs")
    for run in hub.double.workflow_runs:
        hub.double.end_run(run["id"], "failure")
    for _ in range(12):  # the grace of a result that may still come, then as many attempts as are allowed
        hub.round("jobs")
        for run in hub.double.workflow_runs:
            hub.double.end_run(run["id"], "failure")
    assert {job["state"] for job in hub.jobs()} == {"failed"}
    hub.round("aggregates")
    (run,) = aggregates(hub)
    assert (run["status"], run["conclusion"]) == ("completed", "failure")
    assert run["output"]["title"].startswith("2 of 2 pipelines not green: ")


def test_the_aggregates_button_asks_for_all_that_is_called_for(hub: Hub, main: str) -> None:
    pull = change(hub, **{"kernels/scan.py": "fast\n"})
    deliver(hub, pull, main)
    plan(hub)
    hub.deliver("pull_request", payloads.pull_request(pull[1], pull[0], "closed"))
    hub.round("jobs")
    (run,) = aggregates(hub)
    pressed = payloads.check_run(run["id"], run["external_id"], "requested_action", "run_again")
    assert hub.deliver("check_run", pressed).json()["outcome"] == "accepted"
    assert [(job["pipeline"], job["action"]) for job in hub.jobs()] == [("other", "rerun"), ("other", "check")]


def test_a_newer_commit_lets_the_older_go_at_once_also_before_it_is_planned(hub: Hub, main: str) -> None:
    old = change(hub, **{"kernels/scan.py": "fast\n"})
    deliver(hub, old, main, 0)
    assert plan(hub) == ["other"]
    hub.repo.write("kernels/scan.py", "faster\n")
    middle, newest = hub.push("change"), ""
    deliver(hub, (old[0], middle), main, 1)
    assert hub.job()["sentence"] == f"Superseded by {middle[:12]}."
    hub.repo.git("checkout", "-q", "-B", "change", "main")
    hub.repo.write("docs.md", "words\n")
    newest = hub.push("change")
    deliver(hub, (old[0], newest), main, 2)
    assert plan(hub) == ["other"]  # of the one in the middle no job was made, and the newest calls for none
    assert {run["head_sha"]: run["conclusion"] for run in aggregates(hub)} == {old[1]: "cancelled", newest: "success"}


def test_delivered_twice_and_late_it_is_planned_once(hub: Hub, main: str) -> None:
    pull = change(hub, **{"kernels/scan.py": "fast\n"})
    hub.repo.write("kernels/scan.py", "faster\n")
    newer = hub.push("change")
    deliver(hub, (pull[0], newer), main, 5)
    assert deliver(hub, (pull[0], newer), main, 6)["outcome"] == "duplicate"
    assert "is superseded by" in deliver(hub, pull, main, 1)["detail"]
    assert plan(hub) == ["other"]
    assert [job["commit"] for job in hub.jobs()] == [newer]


def test_closed_and_reopened_it_is_planned_anew(hub: Hub, main: str) -> None:
    pull = change(hub, **{"kernels/scan.py": "fast\n"})
    deliver(hub, pull, main, 0)
    deliver(hub, pull, main, 1, "closed")
    assert plan(hub) == []
    deliver(hub, pull, main, 2, "reopened")
    assert plan(hub) == ["other"]


def test_a_new_image_calls_for_those_that_name_it(hub: Hub, main: str) -> None:
    hub.deliver("registry_package", payloads.image(main, "1" * 64))
    hub.deliver("registry_package", payloads.image(main, "1" * 64) | {"action": "updated"})
    assert plan(hub) == ["other"]
    (job,) = hub.jobs()
    assert (job["action"], job["line"]) == ("image", "image ghcr.io/team/train")
    hub.round("jobs")
    assert hub.double.dispatched[0][1]["inputs"] == {
        "key": hub.double.dispatched[0][1]["inputs"]["key"], "pipeline": "other", "commit": main,
        "image": f"ghcr.io/team/train@sha256:{'1' * 64}",
    }  # fmt: skip


def test_what_cannot_be_planned_calls_for_everything(hub: Hub, main: str) -> None:
    deliver(hub, (7, commit("nowhere")), main)
    assert sorted(plan(hub)) == ["other", "tiny"]
    (found,) = hub.client.get("/api/v1/changes").json()
    assert "could not be planned, so every pipeline is called for: git fetch failed" in found["sentence"]


def test_an_origin_that_is_away_is_waited_for(hub: Hub, main: str) -> None:
    pull = change(hub, **{"kernels/scan.py": "fast\n"})
    hub.repo.git("checkout", "-q", "main")
    hub.repo.git("branch", "-q", "-D", "change")
    hub.repo.git("reflog", "expire", "--expire=now", "--all")
    hub.repo.git("update-ref", "-d", "refs/remotes/origin/change")
    hub.repo.git("gc", "-q", "--prune=now")
    bare = hub.double.state.git
    away = bare.rename(bare.with_name("away.git"))
    deliver(hub, pull, main)
    assert plan(hub) == []
    with hub.service.database.read() as session:
        assert "To be planned again: git fetch failed" in session.scalars(select(Change.sentence)).one()
    away.rename(bare)
    with hub.service.database.write() as session:
        session.execute(update(Change).values(after=0.0))
    assert plan(hub) == ["other"]


def test_github_away_and_a_lost_answer_double_no_aggregate(hub: Hub, main: str) -> None:
    pull = change(hub, **{"docs/page.md": "words\n"})
    deliver(hub, pull, main)
    hub.double.trouble = lambda method, path, _: "drop after" if method == "POST" and "check-runs" in path else None
    plan(hub)
    hub.double.trouble = lambda *_: None
    with hub.service.database.write() as session:
        session.execute(update(Change).values(publish_after=0.0))
    hub.round("aggregates")
    hub.round("aggregates")
    assert [run["conclusion"] for run in hub.check_runs()] == ["success"]
