"""Who changed the bits, where the golden's environment is another interpreter on this machine (DESIGN.md 4.4)."""

from __future__ import annotations

from pathlib import Path

from tests.double.double import Double
from tests.project import Project

OTHER = {"diverge": {"step": 2, "group": "parameters"}}


def test_the_change_did_it_where_the_goldens_environment_still_gives_its_bits(project: Project, tmp_path: Path) -> None:
    project.record_golden()
    old = Double.create(tmp_path / "old")
    project.double.misbehave(every=OTHER)
    ran = project.check("--base-python", str(old.python), "--no-localise")
    assert (ran.code, ran.verdict) == (1, "changed")
    gate = ran.gate("attribution")
    assert gate["outcome"] == "holds"
    assert gate["sentence"].startswith(f"The change did it: the environment of {old.python} still gives the golden's")
    assert f"--base-python {old.python}" in ran.report["reproduce"]


def test_the_host_did_it_where_it_gives_the_candidates_bits(project: Project, tmp_path: Path) -> None:
    project.record_golden()
    old = Double.create(tmp_path / "old")
    project.double.misbehave(every=OTHER)
    old.misbehave(every=OTHER)
    ran = project.check("--base-python", str(old.python), "--no-localise")
    assert (ran.code, ran.verdict) == (3, "host_changed")
    assert ran.gate("attribution")["sentence"].startswith("The host did it")


def test_variables_of_the_candidate_are_not_the_bases(project: Project, tmp_path: Path) -> None:
    project.record_golden()
    old = Double.create(tmp_path / "old")
    ran = project.check("--base-python", str(old.python), "--env", "ATEN_CPU_CAPABILITY=avx2", "--no-localise")
    assert (ran.code, ran.verdict) == (1, "changed")
    assert ran.gate("attribution")["outcome"] == "holds"


def test_a_base_interpreter_that_is_not_there_is_refused_before_any_launch(project: Project) -> None:
    ran = project.check("--base-python", "/no/such/python")
    assert ran.code == 2
    assert "/no/such/python" in ran.err


def test_a_base_interpreter_beside_an_image_is_refused(project: Project) -> None:
    ran = project.run("check", "tiny", "--image", "x", "--base-python", "/usr/bin/python3")
    assert (ran.code, "--base-image" in ran.err) == (2, True)
