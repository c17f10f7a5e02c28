"""What ``benchmarks/gpu`` does with launches, on the double of the launch: no GPU is needed here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from benchmarks import fingerprint_overhead
from benchmarks.gpu import candidate, default_mode, first_look, golden
from tests.project import Project
from validator.check.order import Order
from validator.errors import UsageError
from validator.execute.local import LocalExecutor
from validator.pipeline import Finding, Pipeline, load_pipeline, suggest_waivers
from validator.report.progress import NoProgress
from validator.trajectory.groups import Group, Moment, Phase

ROOT = Path(__file__).resolve().parents[2]


def order(project: Project, name: str = "out") -> Order:
    pipeline = load_pipeline("tiny", project.folder)
    return Order(pipeline, project.folder / name, project.goldens, python=str(project.double.python))


def judged(project: Project, **launches: Any) -> tuple[dict[str, Any], Pipeline]:
    """What is made of a check in which launches misbehave so."""
    project.double.misbehave(**launches)
    pipeline, folder = load_pipeline("tiny", project.folder), project.folder / "made"
    folder.mkdir()
    report = project.check().report
    return candidate.judge(report, pipeline, folder, candidate.known_defects(ROOT)), pipeline


RESUMED = ("resume_2", "resume_3")


def test_known_defects_are_waived_with_reason_and_link_and_then_a_golden_is_recorded(project: Project) -> None:
    found, pipeline = judged(project, **{name: {"cpu_draw": True, "rank_rng": True} for name in RESUMED})
    assert (found["holds"], found["golden"]) == (True, "no_baseline")
    assert found["waived"] == ["rng/cpu", "rng/expert-parallel-rng"]
    copy = load_pipeline(found["pipeline"], project.folder)
    assert copy.computation == pipeline.computation
    assert {waiver.name: waiver.link for waiver in copy.policy.waivers} == {
        "rng/cpu": "https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/5257",
        "rng/expert-parallel-rng": "https://github.com/NVIDIA/Megatron-LM/pull/6858",
    }
    assert all(waiver.reason == candidate.known_defects(ROOT)[waiver.name].reason for waiver in copy.policy.waivers)
    # As a person goes on from there: what was printed stands at the end of the pipeline.
    project.pipeline.write_text(project.pipeline.read_text() + found["waivers"])
    assert project.record_golden().code == 0
    assert project.check().verdict == "pass"


def test_a_resume_that_holds_needs_no_waiver(project: Project) -> None:
    found, _ = judged(project)
    assert (found["holds"], found["waived"], found["waivers"]) == (True, [], "")


@pytest.mark.parametrize(
    ("launches", "sentence"),
    [
        ({"resume_2": {"cpu_draw": True, "lost_optimizer": True}}, "broken in more than a known defect"),
        ({"resume_2": {"lost_rng": True}}, "broken in more than a known defect"),
        ({"resume_2": {"skip_group": "buffers"}}, "broken in more than a known defect"),
        ({"repeat": {"random": {"step": 2}}}, "repeatability: fails"),
        ({"resume_2": {"crash": {"step": 4}}}, "resume: error"),
        ({"every": {"blind": True}}, "recorder: error"),
    ],
)  # fmt: skip
def test_whatever_else_a_check_finds_is_refused(project: Project, launches: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        judged(project, **launches)


def test_a_leaf_that_is_no_known_defect_is_refused_by_name() -> None:
    found = Finding("resume", 3, Moment(3, Phase.SETUP), 0, Group.RNG, "numpy", "ab" * 16)
    suggested = suggest_waivers([found], {3: [found.moment]}, date(2027, 5, 31))
    with pytest.raises(UsageError, match=r"The leaf rng/numpy differs after a restore, and is none of rng/"):
        candidate.written_out(suggested, candidate.known_defects(ROOT))


def test_a_golden_candidate_takes_two_launches_and_is_matched_by_a_check(project: Project) -> None:
    made = golden.record(order(project), LocalExecutor(), NoProgress())
    assert (made.record.launches, made.record.resume, made.trace) == (2, "off", None)
    assert sorted(path.name for path in (project.folder / "out" / "launches").iterdir()) == ["reference", "repeat"]
    checked = project.check()
    assert (checked.verdict, checked.outcomes) == ("pass", ("holds",) * 4)


def test_the_default_mode_is_launched_without_deterministic_mode_and_stamped(project: Project) -> None:
    (found,) = default_mode.findings(order(project), NoProgress())
    assert (found["agree"], default_mode.status(found)) == (True, 4)
    for name in ("default-1", "default-2"):
        folder = project.folder / "out" / "launches" / name
        request = json.loads((folder / "request.json").read_text())
        assert "--deterministic-mode" not in request["arguments"]
        assert (request["stamps"], request["settings"]) == (["the default mode"], {"mkldnn": True})
        assert request["record"] is True
        assert json.loads((folder / "trajectory" / "trajectory.json").read_text())


def test_a_difference_in_step_1_is_localised_by_the_same_two_launches(project: Project) -> None:
    project.double.misbehave(every={"random": {"step": 1}})
    first, last = default_mode.findings(order(project), NoProgress())
    assert (first["localisation"], default_mode.status(first)) == (None, 1)
    assert (last["divergence"]["moment"], last["divergence"]["group"]) == ("step:1", "gradients")
    where = last["localisation"]
    assert (where["outcome"], where["phase"], where["module"]) == ("module", "backward", "embedding")
    assert default_mode.status(last) == 0
    launches = {path.name for path in (project.folder / "out" / "launches").iterdir()}
    assert launches == {"default-1", "default-2"}


def test_a_later_difference_is_localised_by_more_launches(project: Project) -> None:
    project.double.misbehave(every={"random": {"step": 4}})
    *_, last = default_mode.findings(order(project), NoProgress())
    assert (last["localisation"]["outcome"], last["localisation"]["step"]) == ("module", 4)
    launches = {path.name for path in (project.folder / "out" / "launches").iterdir()}
    assert launches == {"default-1", "default-2", "trace-repeat-1a", "trace-repeat-1b"}


@pytest.fixture
def looked(project: Project) -> Callable[[float], list[Any]]:
    """A first look at a known overhead of 30 %, with this many seconds for it."""
    project.double.misbehave(every={"step_seconds": {"deterministic": 0.13, "default": 0.1}})

    def look(seconds: float) -> list[Any]:
        return list(first_look.records(order(project), LocalExecutor(), NoProgress(), seconds))

    return look


def test_a_first_look_has_two_pairs_and_then_the_operators(looked: Any) -> None:
    pairs, whole = looked(600)
    assert pairs["mode"] == whole["mode"] == "quick"
    assert pairs["overhead"]["pairs"] == 2
    assert pairs["overhead"]["estimate"] == pytest.approx(0.3, abs=0.01)
    assert pairs["breakdown"] is None
    assert {row["name"] for row in whole["breakdown"]["operators"]} >= {"aten::deterministic", "aten::default"}


def test_a_first_look_without_time_says_so(looked: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (pairs,) = looked(0)
    assert pairs["breakdown"] is None
    assert capsys.readouterr().out.startswith("No breakdown: ")


@pytest.mark.parametrize(
    ("shares", "told"),
    [
        ((0.000, 0.002), "+0.10% of step time, 95 % interval -1.16% to +1.38%, target 1%: within it, but "
                         "2 pairs cannot tell 1% from none"),
        ((0.02, 0.03), "target 1%: above it, but 2 pairs cannot tell 1% from none"),
        ((0.030, 0.0301), "target 1%: missed"),
        ((0.001, 0.0011), "target 1%: held"),
        ((0.005,), "no interval, target 1%: within it, but 1 pair cannot tell 1% from none"),
    ],
)  # fmt: skip
def test_what_pairs_say_about_a_target(shares: tuple[float, ...], told: str) -> None:
    assert fingerprint_overhead.verdict([math.log1p(share) for share in shares], 0.01).endswith(told)
