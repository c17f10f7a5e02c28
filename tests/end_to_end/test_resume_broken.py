"""Resumes that are broken: the gate says where, right after the restore."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.checkpoint import FlipsOneBit, find_tensor
from tests.end_to_end.command import ONLY_RESUME, check, copy_of
from validator.check.order import Order
from validator.check.prepare import prepare
from validator.check.report import build_report
from validator.check.run import Check
from validator.pipeline import load_pipeline
from validator.report.model import Verdict
from validator.report.progress import NoProgress
from validator.trajectory.groups import Group, Moment, Phase
from validator.trajectory.reader import Trajectory


@pytest.mark.slow
def test_a_resume_without_its_random_states_is_broken_in_rng_and_then_in_parameters(tmp_path: Path) -> None:
    without = {"--seq-length 64": "--no-load-rng --seq-length 64"}
    ran = check(tmp_path, copy_of("nemotron-cpu", tmp_path, ONLY_RESUME, without))
    assert (ran.code, ran.verdict) == (1, "resume_broken"), ran.out
    assert ran.outcomes == ("not_run", "not_run", "fails", "holds")
    divergence = ran.report["divergence"]
    assert (divergence["moment"], divergence["group"]) == ("setup:3", "rng")
    spread = ran.spread("resume")
    assert {group for moment, group in spread if moment == "setup:3"} == {"rng"}
    assert {group for moment, group in spread if moment == "entry:3"} == {"rng"}
    assert spread["step:4", "parameters"] > 0
    # Dropout draws from this one: it is what makes the parameters differ.
    assert "model-parallel-rng" in leaves_that_differ(
        ran.trajectory("reference"), ran.trajectory("resume-2"), Group.RNG
    )


#: A tensor that one rank holds whole: the first moment of the first router's weight.
MOMENT = "decoder.layers.1.mlp.router.weight/exp_avg"


@pytest.mark.slow
def test_one_bit_of_one_optimizer_moment_in_a_checkpoint_is_named(tmp_path: Path) -> None:
    pipeline = load_pipeline(copy_of("nemotron-cpu", tmp_path, ONLY_RESUME), tmp_path)
    order = Order(pipeline=pipeline, out=tmp_path / "out", goldens=tmp_path / "golden")
    reference = tmp_path / "out" / "launches" / "reference" / "trajectory"
    executor = FlipsOneBit(3, lambda: find_tensor(Trajectory.open(reference), Moment(3), Group.OPTIMIZER, MOMENT))
    report = build_report(Check(order, prepare(order, executor, NoProgress())).run())

    assert executor.flipped == 1
    assert report.verdict is Verdict.RESUME_BROKEN
    divergence = report.divergence
    assert divergence is not None
    assert (divergence.moment, divergence.group, divergence.leaf) == ("setup:3", "optimizer", MOMENT)
    assert divergence.rank == executor.rank
    resume = next(gate for gate in report.gates if gate.name == "resume")
    at_restore = [(row.group, row.differing) for row in resume.spread if row.moment == "setup:3"]
    assert at_restore == [("optimizer", 1)]
    # The step after it still has the loss of the uninterrupted run, to the last bit: a comparison of logs sees nothing.
    before, after = Trajectory.open(reference), Trajectory.open(reference.parent.parent / "resume-2" / "trajectory")
    for rank in before.ranks:
        losses = [each.metrics(rank, Moment(4))["lm_loss"] for each in (before, after)]
        assert losses[0] == losses[1]


def leaves_that_differ(reference: Trajectory, resumed: Trajectory, group: Group) -> set[str]:
    """Names of leaves of ``group`` that are not right after step 3 was restored."""
    names = set()
    for rank in reference.ranks:
        left, right = reference.leaves(rank, Moment(3), group), resumed.leaves(rank, Moment(3, Phase.SETUP), group)
        names |= {key.name for index, key in enumerate(left.table.keys) if left.leaf(index) != right.leaf(index)}
    return names
