"""check --localise on the double: which launches it makes, and what it says of each kind of divergence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.project import Project, Ran
from validator.arguments import parser
from validator.cli import COMMANDS, wants_localisation
from validator.golden import GoldenStore


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the golden of the double's pipeline is kept once it was recorded."""
    return tmp_path_factory.mktemp("kept") / "golden"


@pytest.fixture
def recorded(project: Project, kept: Path) -> Project:
    """The project with its golden, which is recorded once for all tests of this file."""
    if kept.exists():
        shutil.copytree(kept, project.goldens)
    else:
        assert project.record_golden().code == 0
        shutil.copytree(project.goldens, kept)
    return project


def place(ran: Ran) -> dict[str, object]:
    """What was found of the failing gate; the report's and the gate's own are one."""
    found = ran.report["localisation"]
    assert any(gate["localisation"] == found for gate in ran.report["gates"])
    return dict(found)


def traced(ran: Ran) -> list[str]:
    return [launch["name"] for launch in ran.report["launches"] if launch["name"].startswith("trace")]


def golden_folder(project: Project) -> Path:
    (folder,) = (file.parent for file in project.goldens.rglob("golden.json"))
    return folder


def test_a_golden_is_recorded_with_the_trace_of_step_1(recorded: Project) -> None:
    folder = golden_folder(recorded)
    record = json.loads((folder / "golden.json").read_text())
    assert "trace.jsonl.xz" in record["files"]
    golden = GoldenStore(recorded.goldens).find("tiny", folder.name)
    assert golden is not None
    assert golden.trace == folder / "trace.jsonl.xz"


def test_an_edited_trace_is_an_edited_golden(recorded: Project) -> None:
    (golden_folder(recorded) / "trace.jsonl.xz").write_bytes(b"other")
    ran = recorded.check()
    assert (ran.code, ran.verdict) == (3, "error")
    assert "trace.jsonl.xz was edited or truncated" in ran.report["sentence"]


def test_a_golden_without_a_trace_is_as_good_as_one_with_it(project: Project) -> None:
    project.double.misbehave(trace={"no_trace": True})
    recorded = project.record_golden()
    assert recorded.code == 0
    assert "the golden goes without a module trace of step 1" in recorded.err
    assert not (golden_folder(project) / "trace.jsonl.xz").exists()
    assert project.check("--localise").verdict == "pass"


def test_a_difference_in_step_1_is_found_with_the_goldens_own_trace(recorded: Project) -> None:
    recorded.double.misbehave(
        every={"diverge": {"step": 1, "group": "gradients", "leaf": "decoder.layers.1.weight", "rank": 1}}
    )
    ran = recorded.check("--localise")
    assert (ran.code, ran.verdict) == (1, "changed")
    found = place(ran)
    assert (found["outcome"], found["rank"], found["phase"]) == ("module", 1, "backward")
    assert (found["module"], found["module_class"]) == ("decoder.layers.1", "Layer")
    assert (found["file"], found["line"]) == ("double/layer.py", 2)
    assert traced(ran) == ["trace-observed"]
    assert "module    decoder.layers.1 (Layer)" in ran.out
    assert "code      double/layer.py:2" in ran.out


def test_without_a_trace_or_the_goldens_side_the_module_is_unknown(project: Project) -> None:
    project.change("ranks: 2", "ranks: 1")
    project.double.misbehave(trace={"no_trace": True})
    project.record_golden()
    project.double.misbehave(every={"diverge": {"step": 1}})
    ran = project.check("--localise", "--env", "ATEN_CPU_CAPABILITY=default")
    assert ran.verdict == "changed"
    found = place(ran)
    assert found["outcome"] == "unknown"
    assert "the golden's bits do not come out here either" in str(found["sentence"])
    assert ran.gate("golden")["outcome"] == "fails"


def test_a_changed_variable_is_left_out_to_have_the_goldens_side(recorded: Project) -> None:
    recorded.double.misbehave(
        reference={"diverge": {"step": 4}}, repeat={"diverge": {"step": 4}},
        trace_golden_observed={"diverge": {"step": 4}, "module": "decoder.layers.0"},
    )  # fmt: skip
    ran = recorded.check("--localise", "--env", "OMP_NUM_THREADS=2")
    assert ran.verdict == "changed"
    found = place(ran)
    assert (found["step"], found["outcome"], found["phase"], found["module"]) == (
        4, "module", "forward", "decoder.layers.0"
    )  # fmt: skip
    assert traced(ran) == ["trace-golden-expected", "trace-golden-observed"]
    assert len(found["following"]) > 1  # type: ignore[arg-type]


def test_a_difference_in_the_initialisation_needs_no_launch(recorded: Project) -> None:
    ran = recorded.check("--localise", "--env", "ATEN_CPU_CAPABILITY=avx2")
    assert ran.verdict == "changed"
    found = place(ran)
    assert found["outcome"] == "before_step_1"
    assert "in the initialisation" in str(found["sentence"])
    assert traced(ran) == []


def test_launches_that_differ_are_launched_in_pairs(project: Project) -> None:
    project.double.misbehave(every={"random": {"step": 4}})
    ran = project.check("--localise")
    assert ran.verdict == "nondeterministic"
    found = place(ran)
    assert (found["outcome"], found["step"], found["phase"], found["module"]) == ("module", 4, "backward", "embedding")
    assert (found["attempts"], found["shown"]) == (1, 1)
    assert traced(ran) == ["trace-repeat-1a", "trace-repeat-1b"]


def test_what_does_not_show_again_is_said_so_with_the_number_of_attempts(project: Project) -> None:
    project.double.misbehave(repeat={"random": {"step": 4}})
    ran = project.check("--localise")
    assert ran.verdict == "nondeterministic"
    found = place(ran)
    assert (found["outcome"], found["attempts"], found["shown"]) == ("vanished", 3, 0)
    assert "the difference vanished. Seen in 0 of 3 pairs of launches." in ran.out
    assert traced(ran) == ["trace-repeat-1a", "trace-repeat-1b", "trace-repeat-2b", "trace-repeat-3b"]


def test_what_shows_in_the_third_pair_is_found_there(project: Project) -> None:
    project.double.misbehave(repeat={"random": {"step": 4}}, trace_repeat_3b={"random": {"step": 4}})
    found = place(project.check("--localise"))
    assert (found["outcome"], found["attempts"], found["shown"]) == ("module", 3, 1)


def test_what_a_restore_does_not_bring_back_needs_no_launch(recorded: Project) -> None:
    recorded.double.misbehave(every={"lost_optimizer": True})
    ran = recorded.check("--localise")
    assert ran.verdict == "resume_broken"
    found = place(ran)
    assert (found["outcome"], found["group"], found["leaf"]) == ("group", "optimizer", "step")
    assert "in what was restored of step 3, before any step" in str(found["sentence"])
    assert traced(ran) == []


def test_a_resumed_step_is_traced_on_both_sides_from_the_chains_own_checkpoint(recorded: Project) -> None:
    fault = {"diverge": {"step": 5, "group": "gradients", "leaf": "decoder.layers.0.weight"}}
    recorded.double.misbehave(resume_2=fault, trace_resume_2=fault)
    ran = recorded.check("--localise")
    assert ran.verdict == "resume_broken"
    found = place(ran)
    assert (found["outcome"], found["step"], found["phase"], found["module"]) == (
        "module", 5, "backward", "decoder.layers.0"
    )  # fmt: skip
    assert traced(ran) == ["trace-uninterrupted", "trace-resume-2"]
    request = json.loads((recorded.newest_run / "launches" / "trace-resume-2" / "request.json").read_text())
    assert request["restore_step"] == 3
    assert str(recorded.newest_run / "launches" / "resume-1" / "checkpoints") in request["arguments"]


def test_a_save_that_disturbs_the_run_is_in_the_state_and_no_module(recorded: Project) -> None:
    recorded.double.misbehave(every={"save_disturbs": True})
    ran = recorded.check("--localise")
    assert ran.verdict == "resume_broken"
    found = place(ran)
    assert (found["outcome"], found["group"], found["leaf"]) == ("group", "optimizer", "step")
    assert "when step 4 begins" in str(found["sentence"])


def test_a_difference_that_no_traced_call_shows_is_named_by_its_group(recorded: Project) -> None:
    fault = {"diverge": {"step": 5, "group": "parameters"}, "untraced": True}
    recorded.double.misbehave(trace_uninterrupted={"untraced": True}, resume_2=fault, trace_resume_2=fault)
    found = place(recorded.check("--localise"))
    assert (found["outcome"], found["group"]) == ("group", "parameters")
    assert "no module made it" in str(found["sentence"])


@pytest.mark.parametrize("fault", [{"crash": {"step": 4}}, {"no_trace": True}, {"says": "no such thing"}])
def test_a_failure_of_these_launches_changes_no_verdict(recorded: Project, fault: dict[str, object]) -> None:
    diverge = {"diverge": {"step": 5}}
    recorded.double.misbehave(resume_2=diverge, trace_resume_2={**diverge, **fault})
    ran = recorded.check("--localise")
    assert (ran.code, ran.verdict) == (1, "resume_broken")
    found = place(ran)
    assert found["outcome"] == "unknown"
    assert str(found["sentence"]).startswith("The module is unknown; this does not touch the verdict.")


@pytest.mark.parametrize(
    ("terminal", "ci", "asked", "expected"),
    [
        (True, "", None, True),
        (True, "true", None, False),
        (False, "", None, False),
        (False, "true", True, True),
        (True, "", False, False),
    ],
)
def test_a_person_at_a_terminal_gets_it_unasked(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, ci: str, asked: bool | None, expected: bool
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr("validator.cli.sys.stdout", SimpleNamespace(isatty=lambda: terminal))
    assert wants_localisation(asked) is expected


def test_the_command_line_has_both_forms() -> None:
    parse = parser("", COMMANDS).parse_args
    asked = [parse(["check", "tiny", *words]).localise for words in ([], ["--localise"], ["--no-localise"])]
    assert asked == [None, True, False]
