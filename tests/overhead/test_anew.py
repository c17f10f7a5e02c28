"""A claim about the overhead counts only where the step times bear it out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.overhead.test_record import record
from validator.overhead.anew import _checked, decided
from validator.pipeline.overhead import OverheadPolicy
from validator.report.model import GateReport, Outcome

HOLDS = GateReport("overhead", Outcome.HOLDS, True, "The overhead is below its budget.")


def measured(factor: float) -> tuple[dict[str, Any], OverheadPolicy]:
    """A record whose deterministic arm is slower by that factor, and a policy that it may be decided by."""
    found = record(factor=factor)
    pairs = len(found["pairs"])
    timed = len(found["arms"][0]["launches"][0]["steps"])
    return found, OverheadPolicy(budget=0.10, least_pairs=pairs, most_pairs=pairs, timed=timed)


@pytest.mark.parametrize(("factor", "says"), [(1.01, "holds"), (1.3, "fails")])
def test_the_step_times_decide_and_not_the_records_own_word(factor: float, says: str) -> None:
    found, policy = measured(factor)
    assert decided(found | {"decision": "holds", "budget": 9.0, "overhead": {}}, policy) == says


def test_a_claim_that_is_borne_out_stays() -> None:
    assert _checked(HOLDS, *measured(1.01)) is HOLDS


def test_a_claim_that_the_step_times_contradict_is_an_error() -> None:
    gate = _checked(HOLDS, *measured(1.3))
    assert (gate.outcome, gate.sentence) == (
        Outcome.ERROR, "The result claims that the overhead gate holds; its step times say fails.",
    )  # fmt: skip


def test_no_claim_is_made_better() -> None:
    fails = GateReport("overhead", Outcome.FAILS, True, "above")
    assert _checked(fails, *measured(1.01)) is fails


def without_arms(found: dict[str, Any]) -> None:
    del found["arms"]


def one_launch_less(found: dict[str, Any]) -> None:
    del found["arms"][0]["launches"][0]


def stopped_early(found: dict[str, Any]) -> None:
    for arm in found["arms"]:
        del arm["launches"][2:]


def no_time_at_all(found: dict[str, Any]) -> None:
    found["arms"][0]["launches"][0]["steps"] = [0.0, 0.0, 0.0]


def endless_time(found: dict[str, Any]) -> None:
    found["arms"][1]["launches"][0]["steps"][0] = float("inf")


def one_step_less(found: dict[str, Any]) -> None:
    del found["arms"][0]["launches"][0]["steps"][-1]


def words_for_times(found: dict[str, Any]) -> None:
    found["arms"][1]["launches"][0]["steps"] = ["fast"]


@pytest.mark.parametrize(
    "forge",
    [
        without_arms, one_launch_less, stopped_early, no_time_at_all, endless_time, one_step_less, words_for_times,
        None,
    ],
    ids=lambda forge: "none" if forge is None else forge.__name__,
)  # fmt: skip
def test_a_measurement_that_is_none_bears_nothing_out(forge: Callable[[dict[str, Any]], None] | None) -> None:
    found, policy = measured(1.01)
    if forge is not None:
        forge(found)
    gate = _checked(HOLDS, None if forge is None else found, policy)
    assert gate.outcome is Outcome.ERROR
    assert "cannot be judged" in gate.sentence or "brings no measurement" in gate.sentence


@given(
    junk=st.recursive(
        st.none() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_junk_is_an_error_of_the_gate_and_no_traceback(junk: Any) -> None:
    found, policy = measured(1.01)
    for place in ("arms", "launches"):
        forged = copy.deepcopy(found)
        (forged if place == "arms" else forged["arms"][0])[place] = junk
        assert _checked(HOLDS, forged, policy).outcome is Outcome.ERROR
