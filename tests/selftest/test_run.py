"""The whole command on the double: which launches it takes, and what makes it pass and fail."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.project import Project, Ran

ULP, SAVE, RESTORE = "one-ulp-of-a-moment", "save-of-old-tensors", "rng-tracker-lost"
REPEAT, RARE = "reduction-order-by-time", "one-launch-in-two"


def selftest(project: Project, *faults: str) -> tuple[Ran, dict[str, Any]]:
    file = project.folder / "selftest-result.json"
    words = [word for fault in faults for word in ("--fault", fault)]
    ran = project.run(
        "selftest", "tiny", "--python", str(project.double.python), "--no-localise", "--json", str(file), *words
    )
    return ran, json.loads(file.read_text())


def outcomes(record: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["outcome"] for each in record["faults"]}


def test_faults_are_judged_each_in_its_scenario(project: Project) -> None:
    at = {"group": "gradients", "step": 3, "leaf": "decoder.layers.0.weight"}
    project.double.misbehave(**{
        ULP: {"diverge": {"group": "optimizer", "step": 3}},  # another tensor than the catalogue expects
        RESTORE: {"lost_rng": True},
        f"{SAVE}-save": {"save_disturbs": True},  # the living run changes, and what was saved does not
        f"{REPEAT}-1": {"random": {"step": 1}},
        f"{REPEAT}-2": {"random": {"step": 1}},
        f"{RARE}-2": {"diverge": at},
        "recorder-constant": {"blind": True},
        "rank-killed": {"kill_rank": {"step": 4, "rank": 1}},
    })  # fmt: skip
    ran, record = selftest(project, ULP, SAVE, RESTORE, REPEAT, RARE, "recorder-constant", "rank-killed")
    assert outcomes(record) == {
        ULP: "caught", SAVE: "no_effect", RESTORE: "caught_and_named", REPEAT: "caught_and_named", RARE: "caught",
        "recorder-constant": "caught_and_named", "rank-killed": "caught_and_named",
    }  # fmt: skip
    assert (ran.code, record["holds"], record["clean"]["holds"]) == (1, False, True)
    assert record["rates"]["caught"] == {"part": 6, "whole": 6}
    assert record["rates"]["named"] == {"part": 4, "whole": 6}
    rare = next(each for each in record["faults"] if each["name"] == RARE)
    assert "fired in 1 of 4 launches and was caught in 1" in rare["sentence"]
    assert "93.8%" in rare["sentence"]  # 1 - 0.5 ** 4
    assert rare["launches"] == 4


def test_all_caught_and_named_passes(project: Project) -> None:
    project.double.misbehave(**{RESTORE: {"lost_rng": True}})
    ran, record = selftest(project, RESTORE)
    assert (ran.code, outcomes(record)) == (0, {RESTORE: "caught_and_named"})
    assert ran.out.startswith("SELF-TEST PASSED")


def test_bits_that_change_unseen_are_missed_and_fail_it(project: Project) -> None:
    project.double.misbehave(**{ULP: {"hidden": True}})
    ran, record = selftest(project, ULP)
    assert (ran.code, outcomes(record)) == (1, {ULP: "missed"})
    assert "MISSED" in ran.out


def test_a_control_that_is_not_clean_fails_it_before_any_fault(project: Project) -> None:
    project.double.misbehave(clean={"random": {"step": 2}})
    ran, record = selftest(project, ULP)
    assert (ran.code, record["faults"]) == (1, [])
    assert "step:2" in record["clean"]["sentence"]


def test_a_restore_that_differs_without_a_fault_is_an_error_and_not_a_catch(project: Project) -> None:
    project.double.misbehave(**{"clean-restore-synchronous": {"lost_rng": True}, RESTORE: {"lost_rng": True}})
    ran, record = selftest(project, RESTORE)
    assert (ran.code, outcomes(record)) == (1, {RESTORE: "error"})


def test_a_launch_that_fails_is_the_error_of_its_fault_alone(project: Project) -> None:
    project.double.misbehave(**{ULP: {"crash": {"step": 2}}, RESTORE: {"lost_rng": True}})
    ran, record = selftest(project, ULP, RESTORE)
    assert (ran.code, outcomes(record)) == (1, {ULP: "error", RESTORE: "caught_and_named"})


def test_what_a_pipeline_lacks_is_not_applicable_and_launches_nothing(project: Project) -> None:
    _, record = selftest(project, "embedding-gradient-not-summed")
    (fault,) = record["faults"]
    assert (fault["outcome"], fault["launches"]) == ("not_applicable", 0)
    assert "--pipeline-model-parallel-size" in fault["sentence"]


@pytest.mark.parametrize("word", ["no-such-fault", ""])
def test_an_unknown_fault_is_refused_with_the_known_ones(project: Project, word: str) -> None:
    ran = project.run("selftest", "tiny", "--fault", word)
    assert ran.code == 2
    assert "rng-tracker-lost" in ran.err
    assert "Traceback" not in ran.err


def test_the_catalogue_can_be_listed(project: Project) -> None:
    ran = project.run("faults")
    assert ran.code == 0
    assert ULP in ran.out
    assert "https://" in ran.out
