"""The real command line, launching the double."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.project import Project, Ran
from validator.overhead.record import read_record, record_schema

SLOW = {"step_seconds": {"deterministic": 0.13, "default": 0.10, "fill": 0.12}, "jitter": 0.01}
GATES = "{golden: off, repeatability: required, resume: off}"
QUIET = {"step_seconds": {"deterministic": 0.103, "default": 0.10}, "jitter": 0.01}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def overhead(project: Project, *words: str) -> tuple[Ran, dict[str, Any]]:
    file = project.folder / "overhead.json"
    file.unlink(missing_ok=True)
    ran = project.run("overhead", "tiny", "--python", str(project.double.python), "--json", str(file), *words)
    return ran, json.loads(file.read_text()) if file.exists() else {}


def test_over_budget(project: Project) -> None:
    project.double.misbehave(every=SLOW)
    ran, record = overhead(project)
    assert ran.code == 1
    assert ran.out.startswith("OVER BUDGET  Deterministic mode costs 29.0 % of step time")
    assert record["decision"] == "fails"
    assert record["overhead"]["estimate"] == pytest.approx(0.30, abs=0.03)
    assert record["overhead"]["interval"]["lower"] < 0.30 < record["overhead"]["interval"]["upper"]
    assert [arm["name"] for arm in record["arms"]] == ["deterministic", "default"]
    assert record["arms"][1]["tokens_per_second"] == pytest.approx(5120, rel=0.03)
    assert record["arms"][0]["peak_memory_bytes"] == 2**29 + 1  # of the rank that held most
    assert record["breakdown"]["phases"][1]["name"] == "backward"
    assert record["breakdown"]["phases"][1]["difference"] == pytest.approx(0.015, abs=0.002)
    assert {row["name"] for row in record["breakdown"]["operators"]} == {
        "aten::mm",
        "aten::deterministic",
        "aten::default",
    }
    Draft202012Validator(record_schema()).validate(record)
    assert read_record(project.newest_run / "overhead.json") == record


def test_within_budget(project: Project) -> None:
    project.double.misbehave(every=QUIET)
    ran, record = overhead(project, "--no-breakdown", "--html", str(project.folder / "page.html"))
    assert (ran.code, record["decision"], record["breakdown"]) == (0, "holds", None)
    page = (project.folder / "page.html").read_text()
    assert "within budget" in page
    assert "<script" not in page
    Draft202012Validator(record_schema()).validate(record)


def test_inconclusive_at_the_pair_limit(project: Project) -> None:
    project.double.misbehave(every={"step_seconds": {"deterministic": 0.11, "default": 0.10}, "jitter": 0.1})
    ran, record = overhead(project)
    assert (ran.code, record["decision"], record["overhead"]["pairs"]) == (4, "inconclusive", 8)
    assert "straddles the budget of 10.0 %" in ran.out


def test_a_first_look_decides_nothing(project: Project) -> None:
    project.double.misbehave(every=SLOW)
    ran, record = overhead(project, "--quick")
    assert (ran.code, record["mode"], record["overhead"]["pairs"]) == (0, "quick", 2)
    assert ran.out.startswith("FIRST LOOK")
    Draft202012Validator(record_schema()).validate(record)


def test_the_third_arm(project: Project) -> None:
    project.double.misbehave(every=SLOW)
    ran, record = overhead(project, "--without-fill")
    assert ran.code == 1
    (third,) = record["further"]
    assert (third["arm"], third["over"]) == ("deterministic-without-fill", "default")
    assert third["estimate"] == pytest.approx(0.20, abs=0.03)
    Draft202012Validator(record_schema()).validate(record)


def test_a_budget_below_the_noise_is_refused_now_and_later(project: Project) -> None:
    project.double.misbehave(every={"step_seconds": {"deterministic": 0.1}, "jitter": 0.05})
    project.pipeline.write_text(project.pipeline.read_text() + "  overhead: {budget: 0.5 %}\n")
    ran, record = overhead(project, "--noise")
    assert ran.code == 2
    assert record["mode"] == "noise"
    assert record["noise_floor"]["here"] > 0.005
    assert "policy.overhead.budget is 0.50 %, below the noise floor of" in ran.err
    again, _ = overhead(project)
    assert again.code == 2
    assert "below the noise floor" in again.err
    assert not (project.newest_run / "launches").exists()  # refused before anything was launched
    project.change("budget: 0.5 %", "budget: 50 %")
    assert overhead(project)[0].code == 0


def test_a_broken_noise_record_is_named_and_left_out(project: Project, tmp_path: Path) -> None:
    project.double.misbehave(every=QUIET)
    overhead(project, "--noise")
    (file,) = (tmp_path / "cache").rglob("*.json")
    file.write_text(file.read_text()[:200])
    ran, record = overhead(project)
    assert (ran.code, record["decision"]) == (0, "holds")
    assert f"{file} is broken or half-written" in ran.err


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"crash": {"step": 1}, "no_measurement": True}, "left no measurement"),
        ({"few_steps": True}, "cannot be used"),
        ({"profile_crash": True}, "the profiler is not available"),
    ],
)
def test_a_launch_that_fails_is_an_error_and_no_answer(project: Project, fault: dict[str, Any], words: str) -> None:
    project.double.misbehave(every={**QUIET, **fault})
    ran, record = overhead(project)
    assert ran.code == 3
    assert words in ran.err
    assert "Traceback" not in ran.err
    assert record == {}


@pytest.mark.parametrize("words", [("--quick", "--noise"), ("--noise", "--without-fill")])
def test_options_that_do_not_go_together(project: Project, words: tuple[str, ...]) -> None:
    ran, _ = overhead(project, *words)
    assert ran.code == 2
    assert "do not go together" in ran.err


def test_a_changed_variable_reaches_both_arms_and_stamps_the_record(project: Project) -> None:
    project.double.misbehave(every=QUIET)
    _, record = overhead(project, "--env", "ATEN_CPU_CAPABILITY=avx2", "--no-breakdown")
    assert record["stamps"] == ["--env ATEN_CPU_CAPABILITY=avx2"]


def test_a_known_slowdown_of_one_arm_is_found(project: Project) -> None:
    project.double.misbehave(every={"step_seconds": {"deterministic": 0.1}, "jitter": 0.004})
    ran, record = overhead(project, "--noise", "--switch", "slowdown=0.3")
    assert ran.code == 0
    assert record["decision"] == "fails"
    assert record["overhead"]["interval"]["lower"] < 0.30 < record["overhead"]["interval"]["upper"]


class TestTheGate:
    @pytest.fixture(autouse=True)
    def _few_launches(self, project: Project) -> None:
        """The other gates have tests of their own."""
        project.change("{golden: required, repeatability: required, resume: required}", GATES)

    def test_it_is_off_unless_the_policy_or_the_option_says_otherwise(self, project: Project) -> None:
        ran = project.check()
        assert ran.code == 0
        assert "overhead" not in [gate["name"] for gate in ran.report["gates"]]
        assert ran.report["overhead"] is None

    def test_over_budget_fails_the_check_where_it_is_required(self, project: Project) -> None:
        project.double.misbehave(every=SLOW)
        ran = project.check("--overhead", "required")
        assert (ran.code, ran.verdict) == (1, "over_budget")
        gate = ran.gate("overhead")
        assert (gate["outcome"], gate["required"], gate["launches"]) == ("fails", True, 10)
        assert gate["notes"][0].startswith("deterministic: 1")
        assert ran.report["overhead"]["schema"] == "validator/overhead"
        assert "--overhead required" in ran.report["reproduce"]

    def test_advisory_never_changes_the_verdict(self, project: Project) -> None:
        project.change(GATES, GATES.replace("}", ", overhead: advisory}"))
        project.double.misbehave(every=SLOW)
        ran = project.check()
        assert (ran.code, ran.verdict) == (0, "pass")
        assert ran.gate("overhead")["outcome"] == "fails"

    def test_inconclusive_is_exit_4(self, project: Project) -> None:
        project.double.misbehave(every={"step_seconds": {"deterministic": 0.11, "default": 0.10}, "jitter": 0.1})
        ran = project.check("--overhead", "required")
        assert (ran.code, ran.verdict) == (4, "inconclusive")

    def test_a_timed_launch_that_fails_is_an_error_of_the_gate_alone(self, project: Project) -> None:
        project.double.misbehave(every={**QUIET, "few_steps": True})
        ran = project.check("--overhead", "required")
        assert (ran.code, ran.verdict) == (3, "error")
        assert ran.gate("repeatability")["outcome"] == "holds"
        assert ran.gate("overhead")["outcome"] == "error"

    def test_it_does_not_run_after_bits_that_differ(self, project: Project) -> None:
        project.double.misbehave(every={**SLOW, "random": {"step": 3}})
        ran = project.check("--overhead", "required")
        assert ran.verdict == "nondeterministic"
        assert ran.gate("overhead")["outcome"] == "not_run"
