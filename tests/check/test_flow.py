"""The whole check, launch by launch, on the double: every gate, verdict and exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.project import Project, written_out

CLEAN = ("holds", "holds", "holds", "holds")


def test_a_sound_run_against_its_golden_passes(project: Project) -> None:
    assert project.record_golden().code == 0
    ran = project.check()
    assert (ran.code, ran.verdict, ran.outcomes) == (0, "pass", CLEAN)
    assert [launch["name"] for launch in ran.report["launches"]] == ["reference", "resume-1", "resume-2", "resume-3"]
    assert ran.report["stamps"] == []
    assert ran.report["environment_difference"] == []
    assert "3 independent launches agree" in ran.gate("repeatability")["sentence"]
    assert ran.report["unexercised"] == []


def test_without_a_golden_the_other_gates_still_run(project: Project) -> None:
    ran = project.check()
    assert (ran.code, ran.verdict) == (4, "no_baseline")
    assert ran.outcomes == ("no_baseline", "holds", "holds", "holds")
    assert [launch["name"] for launch in ran.report["launches"]][:2] == ["reference", "repeat"]
    assert "golden record tiny" in ran.report["next_step"]


def test_a_repeatable_difference_is_changed_and_names_its_place(project: Project) -> None:
    project.record_golden()
    project.double.misbehave(every={"diverge": {"step": 4, "group": "optimizer", "leaf": "step", "rank": 1}})
    ran = project.check()
    assert (ran.code, ran.verdict) == (1, "changed")
    assert ran.outcomes == ("fails", "holds", "not_run", "holds")
    divergence = ran.report["divergence"]
    place = (divergence["moment"], divergence["rank"], divergence["group"], divergence["leaf"])
    assert place == ("step:4", 1, "optimizer", "step")
    spread = {(row["moment"], row["group"]): row["differing"] for row in ran.gate("golden")["spread"]}
    assert spread["step:4", "optimizer"] == 1
    assert spread["step:5", "parameters"] == 3
    assert ("step:4", "parameters") not in spread


def test_keep_going_runs_the_later_gates_too(project: Project) -> None:
    project.record_golden()
    project.double.misbehave(every={"diverge": {"step": 4}})
    ran = project.check("--keep-going")
    assert (ran.code, ran.verdict) == (1, "changed")
    assert ran.outcomes == ("fails", "holds", "holds", "holds")


def test_a_changed_variable_is_named_as_the_environments_difference(project: Project) -> None:
    project.record_golden()
    ran = project.check("--env", "ATEN_CPU_CAPABILITY=avx2")
    assert (ran.code, ran.verdict) == (1, "changed")
    row = ran.report["environment_difference"][0]
    assert (row["name"], row["expected"], row["observed"]) == ("ATEN_CPU_CAPABILITY", "default", "avx2")
    assert row["can_change_bits"]
    assert ran.report["stamps"] == ["--env ATEN_CPU_CAPABILITY=avx2"]
    assert "--env ATEN_CPU_CAPABILITY=avx2" in ran.report["reproduce"]


@pytest.mark.parametrize("golden", [True, False])
def test_two_launches_that_differ_are_nondeterministic(project: Project, golden: bool) -> None:
    if golden:
        project.record_golden()
    project.double.misbehave(every={"random": {"step": 4}})
    ran = project.check()
    assert (ran.code, ran.verdict) == (1, "nondeterministic")
    assert ran.gate("repeatability")["divergence"]["moment"] == "step:4"
    assert ran.gate("resume")["outcome"] == "not_run"


@pytest.mark.parametrize(
    ("fault", "moment", "leaf"),
    [
        ({"lost_rng": True}, "setup:3", "model-parallel-rng"),
        ({"lost_optimizer": True}, "setup:3", "step"),
        ({"cpu_draw": True}, "entry:3", "cpu"),
        ({"save_disturbs": True}, "step:4", "step"),
    ],
)
def test_a_resume_that_differs_is_broken_right_where_it_begins(
    project: Project, fault: dict[str, object], moment: str, leaf: str
) -> None:
    project.record_golden()
    project.double.misbehave(resume_1=fault, resume_2=fault, resume_3=fault)
    ran = project.check()
    assert (ran.code, ran.verdict) == (1, "resume_broken")
    assert ran.outcomes == ("holds", "holds", "fails", "holds")
    assert (ran.report["divergence"]["moment"], ran.report["divergence"]["leaf"]) == (moment, leaf)


def test_known_defects_are_waived_once_they_are_pasted(project: Project) -> None:
    project.double.misbehave(every={"rank_rng": True, "cpu_draw": True})
    broken = project.check()
    assert broken.verdict == "resume_broken"
    suggested = broken.report["waivers"]["suggested"]
    assert "rng/expert-parallel-rng" in suggested
    assert "rng/cpu" in suggested

    project.pipeline.write_text(project.pipeline.read_text() + written_out(suggested))
    assert project.record_golden().code == 0
    ran = project.check()
    assert (ran.code, ran.verdict) == (0, "pass")
    seen = {(finding["leaf"], finding["places"][0]) for finding in ran.report["waivers"]["seen"]}
    assert ("rng/expert-parallel-rng", "restore 3, setup:3 .. end") in seen
    assert {finding["leaf"] for finding in ran.report["waivers"]["seen"]} == {"rng/expert-parallel-rng", "rng/cpu"}
    assert ran.report["waivers"]["unused"] == []

    # What follows from a defect is not waived with it.
    project.double.misbehave(every={"rank_rng": True, "cpu_draw": True, "lost_rng": True})
    assert project.check().verdict == "resume_broken"
    # A repaired defect is reported as unused.
    project.double.misbehave()
    repaired = project.check()
    assert repaired.verdict == "pass"
    assert len(repaired.report["waivers"]["unused"]) == 5


def test_a_further_waiver_is_pasted_beneath_the_others(project: Project) -> None:
    """A second list of waivers in one policy would be refused."""
    suggested = ""
    for fault in ({"rank_rng": True}, {"rank_rng": True, "cpu_draw": True}):
        project.double.misbehave(every=fault)
        broken = project.check()
        assert broken.verdict == "resume_broken"
        suggested = written_out(broken.report["waivers"]["suggested"])
        project.pipeline.write_text(project.pipeline.read_text() + suggested)
    assert suggested.startswith("    # to be added to the list of waivers:\n    - gate: resume\n")
    assert project.record_golden().code == 0
    assert project.check().verdict == "pass"


def test_the_reproduce_line_names_the_pipeline_that_was_checked(project: Project, tmp_path: Path) -> None:
    assert project.check().report["reproduce"].startswith("validator check tiny ")
    other = tmp_path / "other" / "pipelines"
    other.mkdir(parents=True)
    file = other / "tiny.yaml"
    file.write_text(project.pipeline.read_text())
    out = project.folder / "other.json"
    ran = project.run(
        "check", str(file), "--python", str(project.double.python), "--json", str(out), "--switch", "digest=pytorch"
    )
    assert ran.code == 4
    words = json.loads(out.read_text())["reproduce"].split()
    assert words[2] == str(file)  # the project's own has this name
    assert words[words.index("--switch") + 1] == "digest=pytorch"


def test_an_expired_waiver_waives_nothing(project: Project) -> None:
    project.double.misbehave(every={"rank_rng": True})
    suggested = written_out(project.check().report["waivers"]["suggested"])
    expiry = next(line for line in suggested.splitlines() if "expires" in line)
    project.pipeline.write_text(
        project.pipeline.read_text() + suggested.replace(expiry, expiry[: expiry.index("2")] + "2020-01-01")
    )
    ran = project.check()
    assert (ran.code, ran.verdict) == (1, "resume_broken")
    assert ran.report["waivers"]["expired"] == ["rng/expert-parallel-rng expired on 2020-01-01"]


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"blind": True}, "not that of its bytes"),
        ({"other_sample": True}, "not that of its bytes"),
        ({"no_samples": True}, "handed over no raw bytes"),
        ({"wrong_answers": True}, "known answer"),
        ({"unmapped": ["buffers: router.bias"]}, "no leaf covers the tensor buffers: router.bias"),
        ({"skip_group": "buffers"}, "buffers is not recorded"),
        ({"skip_group": "main_parameters"}, "main_parameters is not recorded"),
        ({"skip_group": "batch"}, "batch is not recorded"),
        ({"deaf_flips": True}, "did not change its fingerprint"),
        ({"stuck_flips": True}, "did not come back"),
        ({"no_ending": True}, "not every rank wrote an end record"),
    ],
)
def test_a_blind_recorder_is_an_error(project: Project, fault: dict[str, object], sentence: str) -> None:
    project.double.misbehave(every=fault)
    ran = project.check()
    assert (ran.code, ran.verdict) == (3, "error")
    assert sentence in json.dumps(ran.gate("recorder"))
    assert ran.gate("golden")["outcome"] == "not_run"
    assert len(ran.report["launches"]) == 1


def test_a_checkpoint_tensor_without_a_leaf_is_an_error(project: Project) -> None:
    project.double.misbehave(every={"unsaved": ["optimizer: master copy"]})
    ran = project.check()
    assert (ran.code, ran.verdict) == (3, "error")
    assert "optimizer: master copy" in ran.gate("recorder")["sentence"]


def test_a_group_that_never_changed_is_reported_as_not_exercised(project: Project) -> None:
    project.double.misbehave(every={"frozen": "buffers"})
    ran = project.check()
    assert ran.verdict == "no_baseline"
    assert ran.report["unexercised"] == ["buffers"]


@pytest.mark.parametrize(
    ("launches", "outcomes"),
    [
        ("reference", ("error", "not_run", "not_run", "not_run")),
        ("repeat", ("no_baseline", "error", "not_run", "holds")),
        ("resume_2", ("no_baseline", "holds", "error", "holds")),
    ],
)
def test_a_launch_that_fails_is_an_error_of_its_gate(
    project: Project, launches: str, outcomes: tuple[str, ...]
) -> None:
    project.double.misbehave(**{launches: {"kill_rank": {"step": 5, "rank": 1}}})
    ran = project.check()
    assert (ran.code, ran.verdict, ran.outcomes) == (3, "error", outcomes)
    assert "rank 1 was ended by signal 9" in ran.report["sentence"]
    assert "log.txt" in ran.report["sentence"]
    assert ran.report["launches"][-1]["ended"] == "failed"


def test_a_mismatch_that_nobody_could_repeat_is_an_error(project: Project) -> None:
    project.record_golden()
    project.double.misbehave(reference={"diverge": {"step": 4}}, repeat={"crash": {"step": 2}})
    ran = project.check()
    assert (ran.code, ran.verdict) == (3, "error")
    assert ran.outcomes[:2] == ("fails", "error")


def test_a_checkpoint_that_is_never_complete_is_an_error(project: Project) -> None:
    project.double.misbehave(resume_1={"no_tracker": True})
    ran = project.check()
    assert (ran.code, ran.verdict) == (3, "error")
    assert "checkpoint of step 3 was never completed" in ran.gate("resume")["sentence"]


def test_a_launch_that_hangs_is_an_error(project: Project) -> None:
    project.change("launch_seconds: 120", "launch_seconds: 1")
    project.double.misbehave(reference={"hang": {"step": 2}})
    ran = project.check()
    assert (ran.code, ran.verdict) == (3, "error")
    assert "within 1 s" in ran.report["sentence"]


def test_a_damaged_golden_is_an_error_and_named(project: Project) -> None:
    project.record_golden()
    (file,) = project.goldens.glob("tiny/*/trajectory/rank-00001.leaves")
    file.write_bytes(file.read_bytes()[:-1])
    ran = project.check()
    assert (ran.code, ran.verdict) == (3, "error")
    assert "rank-00001.leaves" in ran.report["sentence"]


def test_gates_that_the_policy_switches_off_do_not_run(project: Project) -> None:
    project.change(
        "golden: required, repeatability: required, resume: required",
        "golden: off, repeatability: required, resume: off",
    )
    ran = project.check()
    assert (ran.code, ran.verdict) == (0, "pass")
    assert ran.outcomes == ("not_run", "holds", "not_run", "holds")
    assert [launch["name"] for launch in ran.report["launches"]] == ["reference", "repeat"]


def test_checkpoints_stay_only_where_something_is_to_be_looked_at(project: Project) -> None:
    project.check()
    assert list(project.newest_run.glob("launches/*/checkpoints")) == []
    project.double.misbehave(every={"lost_rng": True})
    project.check("--out", str(project.folder / "broken"))
    assert len(list((project.folder / "broken").glob("launches/*/checkpoints"))) == 2


def test_a_finished_run_leaves_whole_files_only(project: Project) -> None:
    project.check()
    names = {path.name for path in project.newest_run.rglob("*")}
    assert "report.json" in names
    assert not [name for name in names if name.endswith((".part", ".tmp"))]
    assert not (project.newest_run / "launches" / "reference" / "trajectory" / "samples").exists()
