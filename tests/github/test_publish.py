"""Publishing through the command line, against the stateful double of GitHub."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.github.hub import Hub
from tests.report import samples
from validator.github.conclusion import conclusion_of
from validator.report.model import EnvironmentDifferenceRow, Verdict

AGGREGATE, TINY = "validator", "validator / tiny"


def change(hub: Hub, text: str = "torch==2.14.2\n") -> None:
    hub.repo.write("constraints.txt", text)
    hub.repo.commit("a bump")


def test_a_check_runs_life_from_queued_to_completed(hub: Hub) -> None:
    change(hub)
    pull = hub.pull()
    for action, state in (("requested", "queued"), ("in_progress", "in_progress")):
        assert hub.publish(event=hub.event(action)).code == 0
        assert {name: run["status"] for name, run in hub.runs().items()} == {AGGREGATE: state, TINY: state}
    assert hub.check().verdict == "pass"
    ran = hub.publish(str(hub.results / "tiny"))
    assert ran.code == 0, ran.err
    runs = hub.runs()
    assert runs[TINY]["output"]["title"] == "pass: every required gate holds", runs[TINY]["output"]["summary"]
    assert {name: (run["status"], run["conclusion"]) for name, run in runs.items()} == {
        AGGREGATE: ("completed", "success"), TINY: ("completed", "success"),
    }  # fmt: skip
    assert len(hub.double.state.check_runs) == 2  # brought up to date, not made anew
    assert runs[AGGREGATE]["head_sha"] == pull["head"]["sha"]
    assert hub.comments == []  # nothing is wrong and nothing was

    # Events come in any order: a late one sets nothing back.
    hub.publish(event=hub.event("in_progress"))
    assert hub.runs()[TINY]["status"] == "completed"


def test_publishing_twice_changes_nothing(hub: Hub) -> None:
    change(hub)
    hub.pull()
    folder = hub.report("changed")
    hub.publish(str(folder), event=hub.event(conclusion="failure"))
    writes, state = len(hub.double.writes()), json.dumps([hub.double.state.check_runs, hub.comments])
    assert hub.publish(str(folder), event=hub.event(conclusion="failure")).code == 0
    assert len(hub.double.writes()) == writes
    assert json.dumps([hub.double.state.check_runs, hub.comments]) == state


def test_another_attempt_has_check_runs_of_its_own(hub: Hub) -> None:
    change(hub)
    hub.pull()
    hub.publish(str(hub.report("changed")))
    hub.publish(str(hub.report("error")), event=hub.event(run_attempt=2))
    assert len(hub.double.state.check_runs) == 4
    assert hub.runs()[TINY]["output"]["title"].startswith("Error, which says nothing about the bits")


def test_more_than_fifty_annotations_come_in_batches(hub: Hub) -> None:
    rows = tuple(
        EnvironmentDifferenceRow("packages", f"nvidia-part-{number}", "1.0.0", "1.0.1", True, "claimed")
        for number in range(123)
    )
    change(hub, "".join(f"nvidia_part_{number}==1.0.1\n" for number in range(123)))
    hub.pull()
    ran = hub.publish(str(hub.report("changed", environment_difference=rows)))
    assert ran.code == 0, ran.err
    annotations = hub.runs()[TINY]["annotations"]
    assert [each["start_line"] for each in annotations] == list(range(1, 124))
    assert {each["path"] for each in annotations} == {"constraints.txt"}
    assert annotations[7]["message"] == "nvidia-part-7: 1.0.0 when the golden was recorded, 1.0.1 here."
    assert annotations[7]["annotation_level"] == "failure"


def test_an_annotation_stands_on_the_argument_that_changed(hub: Hub) -> None:
    hub.project.change("--hidden-size 64", "--hidden-size 128")
    hub.repo.commit("wider")
    hub.pull()
    rows = (EnvironmentDifferenceRow("arguments", "hidden_size", "64", "128", True, "claimed"),)
    hub.publish(str(hub.report("changed", environment_difference=rows)))
    (annotation,) = hub.runs()[TINY]["annotations"]
    line = hub.project.pipeline.read_text().splitlines()[annotation["start_line"] - 1]
    assert (annotation["path"], line.strip()) == ("pipelines/tiny.yaml", "--hidden-size 128 --bf16")


def test_one_comment_is_made_when_something_is_wrong_and_then_kept_up_to_date(hub: Hub) -> None:
    change(hub)
    hub.pull()
    hub.publish(str(hub.report("changed")))
    (first,) = hub.comments
    assert "changed" in first
    hub.repo.commit("repaired")
    hub.push("change")
    assert hub.check().verdict == "pass"
    assert "updated" in hub.publish(str(hub.results / "tiny")).out
    (second,) = hub.comments
    assert "1 pipeline called for" in second or "pipeline" in second
    assert "❌" not in second
    assert "✅" in second


def test_a_persons_comment_with_our_mark_is_left_alone(hub: Hub) -> None:
    change(hub)
    pull = hub.pull()
    person = {"login": "mallory", "type": "User", "id": 5}
    hub.double.state.create_comment(pull["number"], {"body": "<!-- megatron-change-validator -->\nall green"}, person)
    assert hub.publish(str(hub.report("changed"))).code == 0
    assert len(hub.comments) == 2
    assert hub.comments[0].endswith("all green")


@pytest.mark.parametrize(
    ("verdict", "conclusion"),
    [
        (Verdict.CHANGED, "failure"),
        (Verdict.NONDETERMINISTIC, "failure"),
        (Verdict.RESUME_BROKEN, "failure"),
        (Verdict.OVER_BUDGET, "failure"),
        (Verdict.ERROR, "failure"),
        (Verdict.NO_BASELINE, "action_required"),
        (Verdict.INCONCLUSIVE, "action_required"),
        (Verdict.HOST_CHANGED, "action_required"),
    ],
)
def test_no_verdict_but_the_green_ones_lets_a_merge_through(verdict: Verdict, conclusion: str) -> None:
    report = replace(samples.changed(), verdict=verdict, stamps=())
    assert conclusion_of(report) == conclusion
    assert conclusion_of(replace(report, stamps=("--env A=1",))) == "failure"


def test_no_baseline_needs_a_person(hub: Hub) -> None:
    change(hub)
    hub.pull()
    hub.publish(str(hub.report("no_baseline")))
    assert {run["conclusion"] for run in hub.runs().values()} == {"action_required"}


def test_nothing_called_for_completes_the_aggregate(hub: Hub) -> None:
    hub.repo.write("docs/page.md", "words")
    hub.repo.commit("docs")
    hub.pull()
    assert hub.publish().code == 0
    runs = hub.runs()
    assert list(runs) == [AGGREGATE]
    assert (runs[AGGREGATE]["conclusion"], runs[AGGREGATE]["output"]["title"]) == ("success", "Nothing is called for")


@pytest.mark.parametrize("conclusion", ["cancelled", "success"])
def test_a_missing_result_is_a_failure_whatever_the_run_says(hub: Hub, conclusion: str) -> None:
    change(hub)
    hub.pull()
    hub.publish(event=hub.event(conclusion=conclusion))
    runs = hub.runs()
    assert {run["conclusion"] for run in runs.values()} == {"failure"}
    assert "failed, was cancelled or skipped" in runs[TINY]["output"]["summary"]


def test_findings_of_the_plan_are_action_required(hub: Hub) -> None:
    hub.repo.git("rm", "-rq", "golden", "pipelines")
    hub.repo.commit("removes the pipeline and its golden")
    hub.pull()
    hub.publish()
    (run,) = hub.runs().values()
    assert run["conclusion"] == "action_required"
    assert "The change removes the pipeline tiny" in run["output"]["summary"]


def test_a_fork_is_found_although_its_event_names_no_pull_request(hub: Hub) -> None:
    change(hub)
    hub.pull("change", fork="mallory/train")
    event = hub.event(head_repository={"owner": {"login": "mallory"}}, pull_requests=[])
    assert "comment on #2: created" in hub.publish(str(hub.report("changed")), event=event).out


def test_a_merge_groups_base_is_in_its_branch(hub: Hub) -> None:
    base = hub.repo.git("rev-parse", "main")
    change(hub)
    hub.push("gh-readonly-queue/main/pr-7-" + base)
    event = hub.event(event="merge_group", head_branch=f"gh-readonly-queue/main/pr-7-{base}")
    hub.check()
    assert hub.publish(str(hub.results / "tiny"), event=event).code == 0
    assert hub.runs()[AGGREGATE]["conclusion"] == "success"


def test_a_stamped_run_is_no_gating_result(hub: Hub) -> None:
    change(hub)
    hub.pull()
    ran = hub.check("--env", "UNRELATED=1")
    assert ran.verdict == "pass"
    hub.publish(str(hub.results / "tiny"))
    run = hub.runs()[TINY]
    assert (run["conclusion"], run["output"]["title"]) == ("failure", "Not a gating result: the run is stamped")


def test_the_workflows_own_token_is_a_weaker_way(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALIDATOR_APP_ID", "")
    monkeypatch.setenv("GITHUB_TOKEN", "actions-token")
    change(hub)
    hub.pull()
    assert hub.publish(str(hub.report("changed"))).code == 0
    assert {run["app"]["id"] for run in hub.runs().values()} == {15368}


def test_without_credentials_it_is_one_sentence(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALIDATOR_APP_ID", "")
    ran = hub.publish()
    assert ran.code == 2
    assert ran.err.startswith("validator: There is nobody to speak to GitHub as")
