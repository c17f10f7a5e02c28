"""Re-baselining by the workflows' own steps: proposed, checked, merged, and what is refused on the way."""

from __future__ import annotations

import pytest

from tests.github.team import TINY, Team

pytestmark = [pytest.mark.system, pytest.mark.timeout(500)]


def test_a_failing_pull_request_is_rebaselined_and_main_passes_after_the_merge(team: Team) -> None:
    team.pins("2.15.0")
    pull = team.hub.pull()
    result, actions = team.check(pull)
    assert result == "failure"
    runs = team.publish(pull, actions, result)
    assert runs[TINY]["output"]["title"].startswith("changed")
    old = team.hub.project.run("golden", "list").out.split()[2]

    team.rebaseline(pull, "new kernel, see 7")
    body = team.hub.comments[-1]
    for words in (
        "new kernel, see 7",
        "Asked for by <code>Ann</code>",
        "lm loss, old",
        "lm loss, new",
        "2.15.0",
        "step 4",
    ):
        assert words in body, words
    names = team.repo.git("diff", "--name-only", f"{pull['head']['sha']}...origin/change").splitlines()
    assert names
    assert all(name.startswith("golden/tiny/") for name in names), names

    pull = team.hub.double.state.pull(pull["number"])
    result, actions = team.check(pull)
    assert result == "success", actions.log()
    runs = team.publish(pull, actions, result)
    assert runs[TINY]["output"]["title"].startswith("rebaselined")
    assert runs["validator"]["conclusion"] == "success"

    team.repo.git("checkout", "-q", "main")
    team.repo.git("merge", "-q", "--ff-only", "origin/change")
    team.repo.git("push", "-q", "origin", "main")
    team.repo.git("checkout", "-q", "-b", "next")
    team.change("words in the pins", **{"constraints.txt": "# pinned\ntorch==2.15.0\n"})
    result, actions = team.check(team.hub.pull("next"))
    assert result == "success", actions.log()
    log = team.hub.project.run("golden", "log", "tiny").out
    assert old in log
    assert log.count("approved by") == 2
    assert team.hub.project.run("golden", "verify").code == 0


def test_a_golden_edited_by_hand_is_refused(team: Team) -> None:
    """What a person writes into the record, or into the bits, is no golden; the sentence is on the pull request."""
    (record,) = team.hub.project.goldens.glob("tiny/*/golden.json")
    record.write_text(record.read_text().replace('"first recording"', '"these bits are fine"'))
    team.repo.commit("a better reason")
    pull = team.hub.pull()
    result, actions = team.check(pull)
    assert (result, actions.result("launch"), actions.result("aggregate")) == ("failure", "failure", "failure")
    assert "its golden changed" in actions.log()
    runs = team.publish(pull, actions, result)
    assert {name: run["conclusion"] for name, run in runs.items()} == {"validator": "failure", TINY: "failure"}
    assert "golden.json was edited after it was recorded" in runs[TINY]["output"]["summary"]
    (comment,) = team.hub.comments
    assert "golden.json was edited after it was recorded" in comment


def test_the_second_of_two_rebaselines_is_refused_in_the_pull_request_and_in_the_queue(team: Team) -> None:
    team.pins("2.15.0")
    first = team.hub.pull("first")
    team.repo.git("checkout", "-q", "-b", "other", "main")
    team.pins("2.15.1")
    second = team.hub.pull("second")
    for pull in (first, second):
        team.rebaseline(pull, "new kernel")
    team.repo.git("checkout", "-q", "main")
    team.repo.git("merge", "-q", "--ff-only", "origin/first")
    team.repo.git("push", "-q", "origin", "main")

    # The queue's commit: main as it is now, and the second pull request with its golden as a whole.
    team.repo.git("checkout", "-q", "-b", "group")
    team.repo.git("merge", "-q", "-s", "ours", "-m", "group", "origin/second")
    team.repo.git("rm", "-q", "-r", "golden")
    team.repo.git("checkout", "-q", "origin/second", "--", "golden", "constraints.txt")
    head = team.repo.commit("with its golden")
    result, actions = team.queue(second, head)
    assert (result, actions.result("launch"), actions.result("aggregate")) == ("failure", "failure", "failure")
    branch = f"gh-readonly-queue/main/pr-{second['number']}-{team.repo.git('rev-parse', 'main')}"
    about = {"event": "merge_group", "head_sha": head, "head_branch": branch, "conclusion": result}
    runs = team.published(actions, about)
    assert {name: run["conclusion"] for name, run in runs.items()} == {"validator": "failure", TINY: "failure"}
    assert "record it anew on top of that" in runs[TINY]["output"]["summary"]

    # The pull request itself says so too, once its base has moved on.
    pull = team.hub.double.state.pull(second["number"])
    pull["base"]["sha"] = team.repo.git("rev-parse", "main")
    result, actions = team.check(pull)
    assert result == "failure"
    runs = team.publish(pull, actions, result)
    assert "record it anew on top of that" in runs[TINY]["output"]["summary"]
