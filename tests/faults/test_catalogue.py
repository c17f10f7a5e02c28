"""The catalogue of faults: every entry says what it does and what must catch it; an unknown name is refused."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from validator.errors import LaunchError
from validator.faults import CATALOGUE, Category, Scenario, install
from validator.trajectory.groups import Group, Moment
from validator.trajectory.known_answers import check_known_answers, expected_answers
from validator.workload.digests import Digester


def test_an_unknown_fault_is_refused_with_the_known_ones() -> None:
    with pytest.raises(LaunchError) as refused:
        install("recorder-on-holiday", SimpleNamespace())
    sentence = str(refused.value)
    assert sentence.startswith("there is no fault 'recorder-on-holiday'; --switch fault= takes one of ")
    assert all(name in sentence for name in CATALOGUE)
    assert "\n" not in sentence


def test_every_fault_is_found_by_its_own_name_and_says_what_catches_it() -> None:
    assert {"recorder-constant", "reduction-order-by-time", "rank-killed", "hang"} <= CATALOGUE.keys()
    for name, fault in CATALOGUE.items():
        assert fault.name == name
        assert fault.does
        assert fault.gate


def test_a_constant_recorder_fails_the_known_answers() -> None:
    digester = Digester()
    assert check_known_answers(digester.answer) == expected_answers()
    install("recorder-constant", SimpleNamespace(digester=digester))
    assert set(check_known_answers(digester.answer).values()) == {"00" * 16}


def test_at_least_fifty_faults_act_on_training_itself() -> None:
    kinds = {Category.RECORDER, Category.MACHINERY}
    acting = [fault for fault in CATALOGUE.values() if fault.category not in kinds]
    assert len(acting) >= 50
    assert {fault.category for fault in acting} == set(Category) - kinds


def test_every_fault_names_its_place_and_a_source() -> None:
    for fault in CATALOGUE.values():
        assert fault.source.startswith("https://")
        if fault.scenario not in {Scenario.PROOF, Scenario.BREAKDOWN}:
            assert fault.expected is not None
            Moment.parse(fault.expected.moment)
            assert fault.expected.group == "*" or Group(fault.expected.group)


def test_the_quick_set_covers_every_gate() -> None:
    assert {fault.gate for fault in CATALOGUE.values() if fault.quick} == {
        "golden", "resume", "repeatability", "recorder", "launch",
    }  # fmt: skip
