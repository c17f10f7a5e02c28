from __future__ import annotations

import pytest

from tests.report.samples import METRIC_DIVERGENCE, RESUME_DIVERGENCE
from validator.report.model import GateReport, Outcome, Verdict
from validator.report.words import MEANING, OUTCOME, gate_in_words, moment_in_words, place_in_words, ranks_in_words


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("step:3", "step 3"),
        ("setup:3", "right after the restore of step 3"),
        ("entry:3", "before the first step after the restore of step 3"),
        ("setup:0", "at setup"),
        ("entry:0", "before the first step"),
        ("elsewhere", "elsewhere"),
    ],
)
def test_moments(moment: str, words: str) -> None:
    assert moment_in_words(moment) == words


def test_places() -> None:
    assert place_in_words(METRIC_DIVERGENCE) == "step 1, rank 0, metrics, lm_loss"
    assert place_in_words(RESUME_DIVERGENCE).startswith(
        "right after the restore of step 3, rank 1, optimizer, decoder."
    )


def test_ranks() -> None:
    assert [ranks_in_words(ranks) for ranks in ((), (1,), (0, 1))] == ["every rank", "rank 1", "ranks 0, 1"]


def test_a_gate_says_what_it_rests_on() -> None:
    gate = GateReport("overhead", Outcome.HOLDS, False, "2 % is below the budget", launches=2, seconds=61)
    assert gate_in_words(gate) == "2 % is below the budget (advisory, 2 launches, 1 min 01 s)"


def test_every_verdict_and_outcome_has_words() -> None:
    assert set(MEANING) == set(Verdict)
    assert set(OUTCOME) == set(Outcome)
