"""The headline: the first rule of DESIGN.md 4 that applies."""

from __future__ import annotations

import itertools

import pytest

from validator.check.verdict import SENTENCES, headline
from validator.report.model import GateReport, Outcome, Verdict

H, F, E, N, X = Outcome.HOLDS, Outcome.FAILS, Outcome.ERROR, Outcome.NO_BASELINE, Outcome.NOT_RUN
NAMES = ("golden", "repeatability", "resume", "recorder")


def gates(*outcomes: Outcome, advisory: tuple[str, ...] = ()) -> list[GateReport]:
    pairs = zip(NAMES, outcomes, strict=True)
    return [GateReport(name, outcome, name not in advisory, "") for name, outcome in pairs]


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ((H, H, H, H), Verdict.PASS),
        ((F, F, X, H), Verdict.NONDETERMINISTIC),
        ((N, F, X, H), Verdict.NONDETERMINISTIC),
        ((F, H, X, H), Verdict.CHANGED),
        ((F, H, F, H), Verdict.CHANGED),
        ((H, H, F, H), Verdict.RESUME_BROKEN),
        ((N, H, F, H), Verdict.RESUME_BROKEN),
        ((F, E, X, H), Verdict.ERROR),  # a mismatch that nobody could repeat may be nondeterminism as well
        ((E, X, X, X), Verdict.ERROR),
        ((H, H, E, H), Verdict.ERROR),
        ((N, H, E, H), Verdict.ERROR),
        ((H, H, H, E), Verdict.ERROR),
        ((F, F, F, E), Verdict.ERROR),  # what a blind recorder says is nothing
        ((H, H, X, H), Verdict.ERROR),  # a required gate that did not run is no pass
        ((N, H, H, H), Verdict.NO_BASELINE),
    ],
)
def test_the_first_rule_that_applies(outcomes: tuple[Outcome, ...], verdict: Verdict) -> None:
    assert headline(gates(*outcomes)) is verdict


@pytest.mark.parametrize(
    ("outcomes", "advisory", "verdict"),
    [
        ((F, H, H, H), ("golden",), Verdict.PASS),
        ((N, H, H, H), ("golden",), Verdict.PASS),
        ((H, H, F, H), ("resume",), Verdict.PASS),
        ((H, H, E, H), ("resume",), Verdict.PASS),
        ((N, F, H, H), ("repeatability",), Verdict.NO_BASELINE),
        ((F, F, H, H), ("repeatability",), Verdict.NONDETERMINISTIC),  # then ``changed`` would not be true
        ((F, X, H, H), ("repeatability",), Verdict.CHANGED),  # switched off by the policy
    ],
)
def test_advisory_gates(outcomes: tuple[Outcome, ...], advisory: tuple[str, ...], verdict: Verdict) -> None:
    assert headline(gates(*outcomes, advisory=advisory)) is verdict


def test_pass_only_where_every_required_gate_holds() -> None:
    for outcomes in itertools.product(Outcome, repeat=4):
        if headline(gates(*outcomes)) is Verdict.PASS:
            assert set(outcomes) == {H}


def test_nothing_to_go_by_is_no_pass() -> None:
    assert headline([]) is Verdict.ERROR
    assert headline(gates(X, X, X, H, advisory=("golden", "repeatability", "resume", "recorder"))) is Verdict.ERROR


def test_every_verdict_is_explained() -> None:
    assert set(SENTENCES) == set(Verdict)


@pytest.mark.parametrize(
    ("outcomes", "overhead", "required", "verdict"),
    [
        ((H, H, H, H), H, True, Verdict.PASS),
        ((H, H, H, H), F, True, Verdict.OVER_BUDGET),
        ((H, H, H, H), F, False, Verdict.PASS),
        ((H, H, H, H), Outcome.INCONCLUSIVE, True, Verdict.INCONCLUSIVE),
        ((H, H, H, H), Outcome.INCONCLUSIVE, False, Verdict.PASS),
        ((H, H, H, H), E, True, Verdict.ERROR),
        ((H, H, H, H), X, True, Verdict.ERROR),  # required and not run is no pass
        ((F, H, H, H), F, True, Verdict.CHANGED),
        ((H, H, F, H), F, True, Verdict.RESUME_BROKEN),
        ((F, E, H, H), F, True, Verdict.ERROR),
        ((N, H, H, H), F, True, Verdict.OVER_BUDGET),
        ((N, H, H, H), Outcome.INCONCLUSIVE, True, Verdict.NO_BASELINE),
        ((H, H, E, H), F, True, Verdict.OVER_BUDGET),
    ],
)
def test_the_overhead_comes_after_the_bits(
    outcomes: tuple[Outcome, ...], overhead: Outcome, required: bool, verdict: Verdict
) -> None:
    assert headline([*gates(*outcomes), GateReport("overhead", overhead, required, "")]) is verdict
