"""A check's folder is whole by itself: it can be moved, and a page made from it, without the golden store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.project import Project
from validator.errors import UsageError
from validator.report.json import document
from validator.report.model import Verdict
from validator.report.result import Index, open_result, read_index


def test_the_folder_of_a_check_is_whole_when_it_is_moved(project: Project) -> None:
    project.record_golden()
    assert project.check("--out", "out").verdict == "pass"
    moved = project.folder / "moved"
    shutil.move(project.folder / "out", moved)
    shutil.rmtree(project.goldens)
    result = open_result(moved)
    assert result.problems == ()
    assert result.report.verdict is Verdict.PASS
    given = result.trajectories
    assert given.golden is not None
    assert given.reference is not None
    assert given.golden.root == given.reference.root
    assert given.repeats == ()
    assert [(each.name, each.restore) for each in given.segments] == [("resume-1", 0), ("resume-2", 3), ("resume-3", 6)]


def test_the_report_that_is_read_is_the_report_that_was_written(project: Project) -> None:
    project.record_golden()
    project.double.misbehave(every={"diverge": {"step": 4}})
    project.check("--out", "out", "--keep-going")
    written = json.loads((project.folder / "out" / "report.json").read_text())
    assert document(open_result(project.folder / "out").report) == written


def test_a_repeat_and_no_golden_are_in_the_index(project: Project) -> None:
    assert project.check("--out", "out").verdict == "no_baseline"
    index = json.loads((project.folder / "out" / "result.json").read_text())
    assert index["trajectories"]["golden"] is None
    assert index["trajectories"]["repeats"] == ["launches/repeat/trajectory"]


def test_a_launch_that_fails_leaves_a_result_without_trajectories(project: Project) -> None:
    project.double.misbehave(reference={"crash": {"step": 2}})
    assert project.check("--out", "out").verdict == "error"
    result = open_result(project.folder / "out")
    assert result.report.verdict is Verdict.ERROR
    assert result.trajectories.reference is None


def test_a_damaged_trajectory_is_named_and_the_rest_is_shown(project: Project) -> None:
    project.check("--out", "out")
    victim = project.folder / "out/launches/repeat/trajectory/rank-00001.leaves"
    victim.write_bytes(victim.read_bytes()[:-1])
    ran = project.run("report", "out", "--html", "page.html")
    assert ran.code == 0
    assert "rank-00001.leaves is truncated" in ran.err
    page = (project.folder / "page.html").read_text()
    assert "rank-00001.leaves is truncated" in page
    assert 'data-map="resume"' in page


@pytest.mark.parametrize("place", ["../elsewhere", "/etc", "a/../../b", "", 7])
def test_an_index_cannot_point_out_of_its_folder(tmp_path: Path, place: object) -> None:
    file = tmp_path / "result.json"
    index = json.loads(Index(reference="launches/reference/trajectory").to_text())
    file.write_text(json.dumps(index))
    assert read_index(file) == Index(reference="launches/reference/trajectory")
    index["trajectories"]["reference"] = place
    file.write_text(json.dumps(index))
    with pytest.raises(UsageError, match="is no path inside the folder"):
        read_index(file)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "is no JSON, or is cut off"),
        ("[]", "has schema 'list'"),
        ('{"schema": "validator/trajectory"}', "has schema 'validator/trajectory'"),
        ('{"schema": "validator/report", "version": 2}', "has version 2, this validator reads version 1"),
        ('{"schema": "validator/report", "version": 1}', "verdict is missing"),
        ('{"schema": "validator/report", "version": 1, "verdict": "fine"}', "verdict is 'fine'; values: nondetermin"),
    ],
)
def test_a_file_that_is_no_report_is_refused_in_one_sentence(project: Project, content: str, sentence: str) -> None:
    file = project.folder / "r.json"
    file.write_text(content)
    ran = project.run("report", "r.json", "--html", "page.html")
    assert ran.code == 2
    assert sentence in ran.err
    assert ran.err.count("\n") == 1
    assert not (project.folder / "page.html").exists()


def test_what_is_not_there_is_refused(project: Project) -> None:
    assert project.run("report", "nowhere").code == 2
    (project.folder / "empty").mkdir()
    ran = project.run("report", "empty", "--html", "page.html")
    assert (ran.code, ran.err.count("holds no result.json")) == (2, 1)


def test_a_result_can_be_shown_in_every_form(project: Project) -> None:
    project.check("--out", "out")
    assert "no baseline" in project.run("report", "out").out.lower().replace("_", " ")
    ran = project.run("report", "out", "--markdown", "r.md", "--junit", "r.xml", "--html", "r.html")
    assert ran.code == 0
    assert (project.folder / "r.md").read_text().startswith("## ")
    assert "<testsuite" in (project.folder / "r.xml").read_text()
    assert (project.folder / "r.html").read_text().startswith("<!DOCTYPE html>")


def test_a_comparison_has_a_page_of_its_own(project: Project) -> None:
    project.check("--out", "a")
    project.double.misbehave(every={"diverge": {"step": 4, "group": "optimizer", "leaf": "step"}})
    project.check("--out", "b")
    folders = [f"{name}/launches/reference" for name in "ab"]
    ran = project.run("compare", *folders, "--html", "page.html")
    assert ran.code == 1
    page = (project.folder / "page.html").read_text()
    assert "step 4, rank 0, optimizer, step" in page
    assert project.run("compare", folders[0], folders[0], "--html", "equal.html").code == 0
    assert "Equal: 11 moments" in (project.folder / "equal.html").read_text()
