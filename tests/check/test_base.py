"""A change is judged by the base revision's policy, waivers and golden; a golden that travels with it re-baselines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.project import Project, Ran, written_out
from tests.repository import Repo

CHANGED = {"every": {"diverge": {"step": 4}}}


@pytest.fixture
def repo(project: Project) -> Repo:
    """The project under git: a pipeline and its golden on main, and a branch for a change."""
    repo = Repo.create(project.folder)
    repo.write(".gitignore", "runs/\nreport.json\nbase/\n")
    assert project.record_golden().code == 0
    repo.commit("a pipeline and its golden")
    repo.git("checkout", "-q", "-b", "change")
    return repo


def check(project: Project, *words: str) -> Ran:
    return project.check("--base", "main", *words)


def rebaseline(project: Project, repo: Repo) -> Ran:
    recorded = project.record_golden("--accept-drift")
    assert recorded.code == 0, recorded.err
    repo.commit("new golden")
    return check(project)


def test_a_change_without_effect_passes_against_the_bases_golden(project: Project, repo: Repo) -> None:
    ran = check(project)
    assert (ran.code, ran.verdict) == (0, "pass")
    assert ran.report["base"] == repo.git("rev-parse", "main")
    assert ran.report["policy_changes"] == []
    assert ran.report["new_golden"] is None


def test_policy_of_the_change_has_no_effect_and_is_shown(project: Project, repo: Repo) -> None:
    project.double.misbehave(every={"rank_rng": True})
    suggested = project.check().report["waivers"]["suggested"]
    project.change("golden: required, repeatability: required, resume: required", "golden: off, resume: advisory")
    project.change("launch_seconds: 120", "launch_seconds: 2000")
    project.pipeline.write_text(project.pipeline.read_text() + written_out(suggested))
    repo.commit("drops a gate, raises a limit, adds a waiver")

    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "resume_broken")
    changes = {row["key"]: (row["before"], row["after"]) for row in ran.report["policy_changes"]}
    assert changes["gates.golden"] == ("required", "off")
    assert changes["gates.resume"] == ("required", "advisory")
    assert changes["launch_seconds"] == ("120", "2000")
    assert "Policy changed here" in ran.out
    assert "gates.golden: required -> off" in ran.out
    before, after = changes["waivers.rng/expert-parallel-rng"]
    assert before is None
    assert "restore 3" in after


def test_computation_is_the_changes_own(project: Project, repo: Repo) -> None:
    project.change("seed: 1234", "seed: 1235")
    repo.commit("another seed")
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "changed")
    rows = {row["name"]: (row["expected"], row["observed"]) for row in ran.report["environment_difference"]}
    assert rows["seed"] == ("1234", "1235")


def test_a_new_golden_that_is_reproduced_is_rebaselined(project: Project, repo: Repo) -> None:
    project.double.misbehave(**CHANGED)
    assert check(project).verdict == "changed"
    ran = rebaseline(project, repo)
    assert (ran.code, ran.verdict) == (0, "rebaselined")
    assert ran.gate("golden")["outcome"] == "fails"
    assert ran.gate("golden")["divergence"]["moment"] == "step:4"
    assert not ran.gate("golden")["required"]
    assert ran.gate("rebaseline")["outcome"] == "holds"
    assert [launch["name"] for launch in ran.report["launches"]][:3] == ["reference", "repeat", "resume-1"]
    assert ran.report["new_golden"]["supersedes"] == ran.report["golden"]["digest"]

    # After the merge the new golden is the base's, and the same computation passes.
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--ff-only", "change")
    assert check(project).verdict == "pass"
    log = project.run("golden", "log", "tiny").out
    assert ran.report["golden"]["digest"][:12] in log
    assert project.run("golden", "verify").code == 0


def test_a_first_golden_lands_the_same_way(project: Project) -> None:
    repo = Repo.create(project.folder)
    repo.write(".gitignore", "runs/\nreport.json\n")
    repo.commit("a pipeline without a golden")
    repo.git("checkout", "-q", "-b", "change")
    ran = rebaseline(project, repo)
    assert (ran.code, ran.verdict) == (0, "rebaselined")
    assert ran.gate("golden")["outcome"] == "no_baseline"


def test_a_new_golden_with_a_broken_resume_is_no_rebaseline(project: Project, repo: Repo) -> None:
    project.double.misbehave(**CHANGED)
    project.record_golden("--accept-drift")
    repo.commit("new golden")
    project.double.misbehave(every={"diverge": {"step": 4}, "lost_rng": True})
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "resume_broken")
    assert ran.gate("rebaseline")["outcome"] == "fails"


def test_a_new_golden_that_is_not_reproduced_is_changed(project: Project, repo: Repo) -> None:
    project.double.misbehave(**CHANGED)
    project.record_golden("--accept-drift")
    repo.commit("new golden")
    project.double.misbehave(every={"diverge": {"step": 6}})
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert "is not what it computes" in ran.report["sentence"]
    # Not even where the base's golden still holds: after the merge main would be red.
    project.double.misbehave()
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert ran.gate("golden")["outcome"] == "holds"


def test_a_golden_edited_by_hand_fails_with_a_sentence(project: Project, repo: Repo) -> None:
    (record,) = project.goldens.glob("tiny/*/golden.json")
    record.write_text(record.read_text().replace('"first recording"', '"edited"'))
    repo.commit("edits the record")
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert "golden.json was edited after it was recorded" in ran.report["sentence"]


def test_a_forged_record_of_two_launches_fails_on_what_it_supersedes(project: Project, repo: Repo) -> None:
    shutil.rmtree(project.goldens)
    repo.git("checkout", "-q", "--orphan", "fresh")
    project.double.misbehave(**CHANGED)
    project.record_golden()
    repo.git("symbolic-ref", "HEAD", "refs/heads/change")
    repo.commit("a golden that supersedes nothing")
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert "supersedes none, and in the base revision there is" in ran.report["sentence"]


def test_the_second_of_two_rebaselines_fails_on_supersedes(project: Project, repo: Repo) -> None:
    project.double.misbehave(**CHANGED)
    rebaseline(project, repo)
    repo.git("checkout", "-q", "-b", "second", "main")
    project.double.misbehave(every={"diverge": {"step": 5}})
    assert rebaseline(project, repo).verdict == "rebaselined"
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--ff-only", "change")
    repo.git("checkout", "-q", "second")
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert "record it anew on top of that" in ran.report["sentence"]


def test_a_removed_golden_is_refused(project: Project, repo: Repo) -> None:
    shutil.rmtree(project.goldens)
    repo.commit("removes the golden")
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert "removes the golden of tiny" in ran.report["sentence"]


def test_a_branch_that_is_behind_is_not_taken_for_a_rebaseline(project: Project, repo: Repo) -> None:
    repo.write("docs.md", "words")
    repo.commit("docs")
    repo.git("checkout", "-q", "main")
    project.double.misbehave(**CHANGED)
    project.record_golden("--accept-drift")
    repo.commit("main moves to another golden")
    repo.git("checkout", "-q", "change")
    ran = check(project)
    assert (ran.code, ran.verdict) == (0, "pass")
    assert "rebaseline" not in {gate["name"] for gate in ran.report["gates"]}


@pytest.mark.parametrize("forged", ["golden.json", "trajectory/tree.bin", "trajectory/rank-00000.jsonl"])
def test_forged_files_of_a_golden_are_a_sentence(project: Project, repo: Repo, forged: str) -> None:
    (record,) = project.goldens.glob("tiny/*/golden.json")
    (record.parent / forged).write_bytes(b"[" * 200_000)
    repo.commit("forged")
    ran = check(project)
    assert (ran.code, ran.verdict) == (1, "changed")
    assert "cannot be trusted" in ran.report["sentence"]


def test_an_unknown_base_is_one_sentence(project: Project, repo: Repo) -> None:
    ran = project.check("--base", "nowhere")
    assert (ran.code, ran.report) == (2, {})
    assert ran.err == f"validator: 'nowhere' names no commit in {project.folder}; fetch it, or name another.\n"


def test_reproduce_names_the_base(project: Project, repo: Repo) -> None:
    ran = check(project)
    assert f"--base {repo.git('rev-parse', 'main')}" in ran.report["reproduce"]
    assert json.loads(Path("report.json").read_text())["base"]
