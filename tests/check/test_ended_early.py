"""A launch that stops before its last step, and ends as if that were all, is no launch that agrees."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.project import Project
from tests.trajectory.synthetic import Launch, moments
from validator.check.gates import Segment, resume_gate
from validator.check.plan import LaunchPlan
from validator.check.waivers import WaiverBook
from validator.report.model import Outcome

#: The last of three segments: it restores step 6 of 9.
LAST = LaunchPlan("resume-3", "restores step 6, runs to the end", 6, "resume-2")


@pytest.mark.parametrize(
    ("launch", "step", "gate"),
    [("reference", 4, "golden"), ("resume_1", 4, "resume"), ("resume_3", 7, "resume"), ("resume_3", 8, "resume")],
)
def test_a_launch_that_ends_by_itself_too_early_is_an_error(
    project: Project, launch: str, step: int, gate: str
) -> None:
    assert project.record_golden().code == 0
    project.double.misbehave(**{launch: {"stops": {"step": step}}})
    ran = project.check()
    assert (ran.code, ran.gate(gate)["outcome"]) == (3, "error")
    assert ran.gate(gate)["sentence"].startswith(f"The launch ended by itself after step {step} of 9; see ")


def test_what_stopped_early_does_not_become_golden(project: Project) -> None:
    project.double.misbehave(every={"stops": {"step": 8}})
    ran = project.record_golden()
    assert ran.code == 3
    assert "The launch ended by itself after step 8 of 9; see " in ran.err
    assert not list(project.goldens.glob("tiny/*/golden.json"))


def test_one_rank_that_stops_early_is_an_error(project: Project) -> None:
    project.double.misbehave(reference={"stops": {"step": 4, "rank": 1}})
    assert project.check().gate("golden")["sentence"].startswith("The launch ended by itself after step 4 of 9; see ")


def test_a_launch_that_says_it_has_fewer_ranks_is_an_error(project: Project) -> None:
    project.double.misbehave(reference={"fewer_ranks": True})
    sentence = project.check().gate("golden")["sentence"]
    assert sentence.startswith("The launch recorded 1 rank, and the pipeline has 2; see ")


def test_a_claim_that_is_no_mapping_is_quoted_briefly(project: Project) -> None:
    project.double.misbehave(reference={"claims": {"packages": "x" * 100_000 + "\n::error::no"}})
    sentence = project.check().gate("golden")["sentence"]
    assert sentence.startswith("The launch's claims have 'xxx")
    assert len(sentence) == 200
    assert "\n" not in sentence


@pytest.mark.parametrize(("reached", "outcome"), [(9, Outcome.HOLDS), (8, Outcome.FAILS), (7, Outcome.FAILS)])
def test_the_last_segment_is_asked_for_every_step_of_the_uninterrupted_launch(
    tmp_path: Path, reached: int, outcome: Outcome
) -> None:
    reference = Launch(moments=moments(9)).seal(tmp_path / "reference")
    segment = Launch(moments=moments(reached, 6)).seal(tmp_path / "segment")
    gate = resume_gate(reference, [Segment(LAST, segment)], WaiverBook("resume", (), date(2026, 11, 30)), required=True)
    assert gate.outcome is outcome
    if outcome is Outcome.FAILS:
        assert gate.divergence is not None
        assert (gate.divergence.kind, gate.divergence.moment) == ("length", f"step:{reached + 1}")
