"""Launches that do not agree, launches that do, and no golden to compare with."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.end_to_end.command import NO_RESUME, Checked, check, copy_of, validator
from tests.trajectory.synthetic import Launch, moments
from validator.compare import compare, resume_pairs
from validator.trajectory.groups import Group, Moment
from validator.trajectory.reader import Trajectory


@pytest.mark.slow
def test_sums_in_an_order_taken_from_the_clock_are_nondeterministic(tmp_path: Path) -> None:
    pipeline = copy_of("nemotron-cpu", tmp_path, NO_RESUME)
    ran = check(tmp_path, pipeline, "--switch", "fault=reduction-order-by-time")
    assert (ran.code, ran.verdict) == (1, "nondeterministic"), ran.out
    assert ran.outcomes == ("fails", "fails", "not_run", "holds")
    assert ran.launches == ["reference", "repeat"]
    divergence = ran.gate("repeatability")["divergence"]
    assert divergence["moment"] == "step:1"
    # Gradients are what was summed; nothing before them differs.
    assert not {group for moment, group in ran.spread("repeatability") if moment == "step:1"} & {"batch", "rng"}
    assert ran.spread("repeatability")["step:1", "gradients"] > 0
    assert ran.report["stamps"] == ["switch fault=reduction-order-by-time"]


@pytest.mark.slow
@pytest.mark.system
def test_without_a_golden_there_is_no_baseline_and_the_other_gates_ran(tmp_path: Path) -> None:
    (tmp_path / "golden").mkdir()
    ran = check(tmp_path, "nemotron-cpu", "--golden", str(tmp_path / "golden"))
    assert (ran.code, ran.verdict) == (4, "no_baseline"), ran.out
    assert ran.outcomes == ("no_baseline", "holds", "holds", "holds")
    assert ran.launches == ["reference", "repeat", "resume-1", "resume-2", "resume-3"]
    assert "golden record" in ran.report["next_step"]
    assert not list((tmp_path / "golden").iterdir())


@pytest.mark.slow
def test_real_trajectories_that_are_equal_compare_as_equal(sound: Checked, tmp_path: Path) -> None:
    reference = sound.trajectory("reference")
    assert compare(reference, reference).equal
    first = sound.trajectory("resume-1")  # was never restored, so nothing is waived
    pairs = resume_pairs(reference, first, 0)
    assert compare(reference, first, pairs).equal
    assert len(pairs) == 2 + 5


def test_200_comparisons_of_equal_trajectories_raise_no_alarm(tmp_path: Path) -> None:
    """Equal content, written independently: in one go or rank after rank, by a launch that ended or one that was
    killed.
    """
    equal = 0
    for number in range(200):
        contents = {
            (rank, moment, Group.PARAMETERS, "decoder.weight"): f"{number} {rank} {moment}".encode()
            for rank in range(2)
            for moment in moments(3)
        }
        one = Launch(contents=contents).seal(tmp_path / f"{number}-one")
        other = Launch(contents=contents, ended=number % 2 == 0).seal(tmp_path / f"{number}-other")
        comparison = compare(Trajectory.open(one.directory), Trajectory.open(other.directory))
        assert comparison.leaves_compared > 0
        equal += comparison.equal
    assert equal == 200


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_20_real_launches_agree(tmp_path: Path) -> None:
    recorded = []
    for number in range(20):
        ran = validator("record", "nemotron-cpu", "--out", str(tmp_path / f"launch-{number}"))
        assert ran.code == 0, ran.err
        recorded.append(Trajectory.open(tmp_path / f"launch-{number}"))
    assert len({trajectory.root for trajectory in recorded}) == 1
    assert all(compare(one, other).equal for one, other in itertools.combinations(recorded, 2))
    assert recorded[0].moments[-1] == Moment(10)
    assert validator("compare", str(tmp_path / "launch-0"), str(tmp_path / "launch-19")).code == 0
