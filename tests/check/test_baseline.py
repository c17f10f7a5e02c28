"""Recording a golden, and a trajectory."""

from __future__ import annotations

import pytest

from tests.project import Project


def test_recording_takes_two_launches_the_resume_chain_and_a_trace_of_step_1(project: Project) -> None:
    ran = project.record_golden()
    assert ran.code == 0
    (record,) = project.goldens.glob("tiny/*/golden.json")
    assert '"launches": 2' in record.read_text()
    assert '"resume": "holds"' in record.read_text()
    launches = {path.name for path in (project.newest_run / "launches").iterdir()}
    assert launches == {"reference", "repeat", "resume-1", "resume-2", "resume-3", "trace"}


@pytest.mark.parametrize(
    ("faults", "code", "sentence"),
    [
        ({"every": {"random": {"step": 3}}}, 1, "Two launches do not agree"),
        ({"every": {"lost_rng": True}}, 1, "resume gate does not hold"),
        ({"every": {"nan": {"step": 3}}}, 2, "finite"),
        ({"every": {"blind": True}}, 3, "recorder is blind"),
        ({"resume_3": {"crash": {"step": 8}}}, 3, "illegal memory access"),
    ],
)
def test_what_is_not_fit_does_not_become_golden(
    project: Project, faults: dict[str, dict[str, object]], code: int, sentence: str
) -> None:
    project.double.misbehave(**faults)
    ran = project.record_golden()
    assert ran.code == code
    assert sentence in ran.err
    assert not list(project.goldens.glob("tiny/*/golden.json"))


def test_a_known_defect_comes_with_its_waiver(project: Project) -> None:
    project.double.misbehave(every={"rank_rng": True})
    assert 'leaf: "rng/expert-parallel-rng"' in project.record_golden().err


def test_a_changed_environment_cannot_be_approved(project: Project) -> None:
    ran = project.record_golden("--env", "ATEN_CPU_CAPABILITY=avx2")
    assert ran.code == 2
    assert "--env ATEN_CPU_CAPABILITY=avx2" in ran.err


def test_a_large_jump_must_be_acknowledged(project: Project) -> None:
    project.record_golden()
    project.double.misbehave(every={"jump": 1.5})
    refused = project.record_golden()
    assert refused.code == 2
    assert "--accept-drift" in refused.err
    assert project.check().verdict == "changed"
    assert project.record_golden("--accept-drift").code == 0
    assert project.check().verdict == "pass"


def test_a_trajectory_is_recorded_whole(project: Project) -> None:
    target = project.folder / "kept"
    ran = project.run("record", "tiny", "--python", str(project.double.python), "--out", str(target))
    assert ran.code == 0
    assert (target / "trajectory.json").exists()
    again = project.run("record", "tiny", "--python", str(project.double.python), "--out", str(target))
    assert again.code == 2
    assert str(target) in again.err


def test_a_place_that_cannot_be_written_is_said_before_anything_is_launched(project: Project) -> None:
    (project.folder / "file").write_text("")
    target = project.folder / "file" / "kept"
    ran = project.run("record", "tiny", "--python", str(project.double.python), "--out", str(target))
    assert ran.code == 3
    assert f"{target} cannot be written (Not a directory); change --out." in ran.err
    assert not list((project.folder / "runs").glob("*/launches"))


def test_a_launch_that_fails_leaves_no_half_of_a_trajectory(project: Project) -> None:
    project.double.misbehave(every={"crash": {"step": 2}})
    target = project.folder / "kept"
    ran = project.run("record", "tiny", "--python", str(project.double.python), "--out", str(target))
    assert ran.code == 3
    assert not list(project.folder.glob("*kept*"))


def test_a_file_that_cannot_be_read_is_one_sentence(project: Project) -> None:
    target = project.folder / "kept"
    assert project.run("record", "tiny", "--python", str(project.double.python), "--out", str(target)).code == 0
    leaves = next(target.glob("*.leaves"))
    leaves.unlink()
    leaves.mkdir()
    ran = project.run("compare", str(target), str(target))
    assert ran.code in {2, 3}
    assert ran.err.count("\n") == 1
    assert str(leaves) in ran.err
