"""Who changed the bits, and what the headline makes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trajectory.synthetic import Launch
from validator.check.attribution import attribution_gate
from validator.check.report import sentence_of
from validator.check.verdict import headline
from validator.report.model import GateReport, Outcome, Verdict
from validator.trajectory.groups import Group, Moment
from validator.trajectory.reader import Trajectory

GOLDEN, OTHER, THIRD = b"golden", b"other", b"third"


def trajectory(folder: Path, content: bytes) -> Trajectory:
    return Launch(contents={(1, Moment(2), Group.GRADIENTS, "decoder.bias"): content}).seal(folder)


@pytest.mark.parametrize(
    ("base", "candidate", "outcome", "verdict", "words"),
    [
        (GOLDEN, OTHER, Outcome.HOLDS, Verdict.CHANGED, "The image did it: the base still gives the golden's bits"),
        (OTHER, OTHER, Outcome.FAILS, Verdict.HOST_CHANGED, "The host did it: the base gives the same bits here"),
        (THIRD, OTHER, Outcome.FAILS, Verdict.CHANGED, "The host changed, and the image too: the base gives neither"),
    ],
)
def test_who_did_it(
    tmp_path: Path, base: bytes, candidate: bytes, outcome: Outcome, verdict: Verdict, words: str
) -> None:
    contents = {"golden": GOLDEN, "candidate": candidate, "base": base}
    golden, here, there = (trajectory(tmp_path / name, content) for name, content in contents.items())
    gate = attribution_gate(golden, here, there, ("the base", "the candidate"), ("variables X: a in the base, b here",))
    assert gate.outcome is outcome
    assert gate.sentence.startswith(words)
    assert gate.notes == ("variables X: a in the base, b here",)
    assert (gate.divergence is not None) is (base is THIRD)
    gates = (
        GateReport("golden", Outcome.FAILS, True, "Differs."),
        gate,
        GateReport("repeatability", Outcome.HOLDS, True, "Agree."),
    )
    assert headline(gates) is verdict
    assert sentence_of(verdict, gates) == gate.sentence


def test_what_could_not_be_launched_attributes_nothing() -> None:
    gates = (
        GateReport("golden", Outcome.FAILS, True, "Differs."),
        GateReport("attribution", Outcome.ERROR, False, "The launch failed."),
        GateReport("repeatability", Outcome.HOLDS, True, "Agree."),
    )
    assert headline(gates) is Verdict.CHANGED
    assert sentence_of(Verdict.CHANGED, gates).startswith("Repeatable, but not the golden's bits")


def test_a_base_of_other_ranks_cannot_be_compared(tmp_path: Path) -> None:
    golden, candidate = (trajectory(tmp_path / name, content) for name, content in (("a", GOLDEN), ("b", OTHER)))
    base = Launch(ranks=1).seal(tmp_path / "c")
    assert attribution_gate(golden, candidate, base, ("x", "y"), ()).outcome is Outcome.ERROR
