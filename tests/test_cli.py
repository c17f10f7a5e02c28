"""The command line: options, exit codes, and files, through ``main`` in a temporary project."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.project import Project
from validator import __version__


def record(project: Project, name: str, *words: str) -> Path:
    target = project.folder / name
    assert project.run("record", "tiny", "--python", str(project.double.python), "--out", str(target), *words).code == 0
    return target


def test_compare_equal_trajectories(project: Project) -> None:
    first, second = record(project, "first"), record(project, "second")
    ran = project.run("compare", str(first), str(second))
    assert ran.code == 0
    assert ran.out.startswith("Equal: 11 moments")


def test_compare_different_trajectories(project: Project) -> None:
    first = record(project, "first")
    second = record(project, "second", "--env", "ATEN_CPU_CAPABILITY=avx2")
    ran = project.run("compare", str(first), str(second))
    assert ran.code == 1
    assert "setup:0, rank 0: rng/" in ran.out  # of all that differs, what a step needs first
    assert "ATEN_CPU_CAPABILITY: default -> avx2" in ran.out


def test_compare_a_golden_with_a_launch_of_a_check(project: Project) -> None:
    project.record_golden()
    project.check()
    (golden,) = project.goldens.glob("tiny/*")
    assert project.run("compare", str(golden), str(project.newest_run / "launches" / "reference")).code == 0


def test_compare_what_is_no_trajectory(project: Project) -> None:
    ran = project.run("compare", str(project.folder), str(project.folder))
    assert ran.code == 2
    assert "trajectory.json" in ran.err


def test_reports_are_written_where_they_are_asked_for(project: Project) -> None:
    ran = project.check("--markdown", "deep/report.md", "--junit", "report.xml")
    assert ran.report["schema"] == "validator/report"
    assert "no_baseline" in (project.folder / "deep" / "report.md").read_text().lower().replace(" ", "_")
    assert ET.parse(project.folder / "report.xml").getroot().tag == "testsuites"  # noqa: S314 - written by us
    assert (project.newest_run / "report.json").read_text() == (project.folder / "report.json").read_text()


def test_a_report_that_cannot_be_written_is_no_pass(project: Project) -> None:
    project.record_golden()
    (project.folder / "file").write_text("")
    ran = project.check("--markdown", "file/report.md")
    assert ran.code == 3
    assert "file/report.md" in ran.err
    assert ran.verdict == "pass"  # the JSON report was written all the same


def test_out_must_be_empty(project: Project) -> None:
    ran = project.check("--out", str(project.folder))
    assert ran.code == 2
    assert "--out" in ran.err


def test_runs_go_into_a_folder_that_git_ignores(project: Project) -> None:
    project.check()
    assert (project.folder / "runs" / ".gitignore").read_text() == "*\n"
    assert project.newest_run.name.startswith("tiny-2")


def test_piped_output_has_no_control_characters(project: Project) -> None:
    ran = project.check()
    assert not [character for character in ran.out + ran.err if ord(character) < 32 and character != "\n"]
    assert "[1/5] reference" in ran.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["check", "none"], "tiny"),
        (["check", "tiny", "--env", "X"], "--env"),
        (["check", "tiny", "--env", "NCCL_ALGO=Tree"], "NCCL_ALGO"),
        (["check", "tiny", "--env", "PYTHONPATH=/x"], "PYTHONPATH"),
        (["check", "tiny", "--python", "/nowhere/python"], "--python"),
        (["check", "tiny", "--megatron", "/"], "megatron/core"),
        (["check", "tiny", "--golden", "/nowhere"], "--golden"),
        (["golden", "show", "none"], "golden list"),
    ],
)
def test_a_request_that_cannot_be_carried_out_exits_2(project: Project, words: list[str], sentence: str) -> None:
    ran = project.run(*words)
    assert ran.code == 2
    assert sentence in ran.err
    assert ran.err.startswith("validator: ")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [[], ["check"], ["check", "tiny", "--surprise"], ["golden"], ["golden", "record", "tiny"]]
)
def test_wrong_usage_exits_2(project: Project, words: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        project.run(*words)
    assert raised.value.code == 2


def test_a_golden_elsewhere(project: Project) -> None:
    elsewhere = project.folder / "elsewhere"
    assert project.record_golden("--golden", str(elsewhere)).code == 0
    assert not project.goldens.exists()
    assert project.check("--golden", str(elsewhere)).verdict == "pass"
    assert project.check().verdict == "no_baseline"


def test_golden_list_show_verify_log(project: Project) -> None:
    project.record_golden()
    assert "Ann: first recording" in project.run("golden", "list").out
    assert '"approver": "Ann"' in project.run("golden", "show", "tiny").out
    assert project.run("golden", "verify").code == 0
    git = ["git", "-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "golden"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    assert "approved by Ann: first recording" in project.run("golden", "log", "tiny").out
    ran = project.run("golden", "log", "tinny")
    assert (ran.code, ran.out) == (2, "")
    assert "There is no golden of 'tinny' in " in ran.err
    (file,) = project.goldens.glob("tiny/*/trajectory/rank-00000.leaves")
    file.write_bytes(b"edited")
    ran = project.run("golden", "verify")
    assert ran.code == 3
    assert "rank-00000.leaves" in ran.out


def test_pipeline_list_validate_show(project: Project) -> None:
    assert project.run("pipeline", "list").out == "tiny  a few steps of the double\n"
    assert "valid" in project.run("pipeline", "validate").out
    shown = project.run("pipeline", "show", "tiny").out
    assert '"steps": 9' in shown
    assert "resume-2: restores step 3" in shown
    project.change("steps: 9", "steps: nine")
    ran = project.run("pipeline", "validate", "tiny")
    assert ran.code == 2
    assert "computation.steps" in ran.err


def test_a_pipeline_can_be_a_file(project: Project) -> None:
    elsewhere = project.folder / "tiny.yaml"
    project.pipeline.rename(elsewhere)
    (project.folder / "pipelines").rmdir()
    ran = project.run("check", "tiny.yaml", "--python", str(project.double.python))
    assert ran.code == 4


def test_doctor(project: Project) -> None:
    ran = project.run("doctor", "--python", str(project.double.python))
    assert ran.code in {0, 3}  # 3 where the test environment has no torch
    assert "cores" in ran.out


def test_a_defect_of_ours_is_never_taken_for_a_mismatch(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("validator.check.report.build_report", broken)
    ran = project.run("check", "tiny", "--python", str(project.double.python))
    assert ran.code == 3
    assert "defect" in ran.err


def test_version(project: Project) -> None:
    done = subprocess.run([sys.executable, "-m", "validator", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"validator {__version__}\n"
