"""Rates over effective faults, when a self-test holds, and what a person is shown."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from validator.selftest.matrix import as_markdown, as_text, headline, line_of
from validator.selftest.outcome import Approaches, FaultResult, Outcome, SelfTestResult

CAUGHT = FaultResult(
    "one", "rng", "does it", "golden", Outcome.CAUGHT_AND_NAMED, "step:3 rng/cpu", "step:3 rng/cpu",
    approaches=Approaches(False, True), seconds=12.0, launches=1,
)  # fmt: skip
MODULE = replace(CAUGHT, name="two", module="decoder.*", found_module="decoder.layers.0", localised=True)
NOT_HERE = FaultResult("three", "losses", "does that", "golden", Outcome.NOT_APPLICABLE, sentence="It needs TP.")


def result(*faults: FaultResult, clean: bool = True) -> SelfTestResult:
    return SelfTestResult("tiny", "cpu-1x2", "2026-11-30T00:00:00+00:00", 60.0, False, clean, "Clean is clean.", faults)


def test_rates_are_over_effective_faults() -> None:
    found = result(CAUGHT, MODULE, NOT_HERE, replace(CAUGHT, name="four", outcome=Outcome.NO_EFFECT))
    assert (str(found.caught), str(found.named), str(found.localised)) == ("2 of 2", "2 of 2", "1 of 1")
    assert (str(found.seen_by("five_decimals")), str(found.seen_by("exact_loss"))) == ("0 of 2", "2 of 2")
    assert found.holds


@pytest.mark.parametrize("outcome", [Outcome.CAUGHT, Outcome.MISSED, Outcome.ERROR])
def test_one_fault_that_is_missed_misnamed_or_not_known_fails_the_self_test(outcome: Outcome) -> None:
    found = result(CAUGHT, replace(MODULE, outcome=outcome, sentence="why"))
    assert not found.holds
    assert headline(found).startswith("SELF-TEST FAILED")
    assert "--fault two" in as_text(found)


def test_a_control_that_is_not_clean_fails_it() -> None:
    found = result(clean=False)
    assert not found.holds
    assert "the control is not clean" in headline(found)


def test_the_record_is_json_with_shares_and_faults() -> None:
    record = json.loads(json.dumps(result(CAUGHT, MODULE, NOT_HERE).to_json()))
    assert record["rates"]["caught"] == {"part": 2, "whole": 2}
    assert [each["outcome"] for each in record["faults"]] == ["caught_and_named", "caught_and_named", "not_applicable"]
    assert record["holds"] is True


def test_both_renderings_name_every_fault_its_place_and_module() -> None:
    found = result(CAUGHT, MODULE, NOT_HERE)
    for shown in (as_text(found), as_markdown(found)):
        assert all(word in shown for word in ("one", "two", "three", "rng/cpu", "decoder.layers.0"))


def test_hostile_names_cannot_leave_their_cell() -> None:
    shown = as_markdown(result(replace(CAUGHT, found="step:3 rng/`|<b>\x1b[2J")))
    assert "\x1b" not in shown


def test_the_line_of_a_fault_is_one_line_that_does_nothing() -> None:
    found = line_of(replace(CAUGHT, found="step:3 rng/\x1b[2J\n::error::injected\ud800"))
    assert found.endswith("  step:3 rng/\\x1b[2J\\x0a::error::injected\\ud800  (12.0 s)")
    assert found.isprintable()
