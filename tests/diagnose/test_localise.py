"""Where a difference begins, on traces made by hand in which it was planted at a known event."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.diagnose.made import RANKS, Step, without
from validator.diagnose.localise import localise_traces
from validator.diagnose.traces import Event, Trace
from validator.report.model import Localisation, LocalisationOutcome

CLEAN = Step().trace()
PLACES = [(rank, event.number) for rank, events in CLEAN.events.items() for event in events]


def event_of(phase: str, module: str = "", rank: int = 0, name: str = "") -> Event:
    """The first event of this kind in the clean step."""
    return next(
        event for event in CLEAN.events[rank]
        if (event.phase, event.module) == (phase, module) and name in ("", event.name)
    )  # fmt: skip


def planted(event: Event, rank: int = 0) -> Localisation:
    return localise_traces(CLEAN, Step(planted=(rank, event.number)).trace())


@given(st.sampled_from(PLACES))
def test_a_difference_planted_at_an_event_and_spread_from_there_gives_that_event_back(place: tuple[int, int]) -> None:
    rank, number = place
    event = CLEAN.events[rank][number]
    found = localise_traces(CLEAN, Step(planted=place).trace())
    assert (found.step, found.rank, found.phase, found.module) == (2, rank, event.phase, event.module)
    assert found.micro_batch == event.micro_batch
    assert (found.module_class, found.file, found.line) == (event.source.name, event.source.file, event.source.line)
    modules = event.phase not in ("start", "batch", "end")
    assert found.outcome is (LocalisationOutcome.MODULE if modules else LocalisationOutcome.GROUP)
    assert {value.name for value in found.outputs if value.expected != value.observed} == set(event.outputs)
    assert all(value.expected == value.observed for value in found.inputs)


def test_equal_traces_have_no_difference_any_more() -> None:
    found = localise_traces(CLEAN, Step().trace())
    assert found.outcome is LocalisationOutcome.VANISHED
    assert found.sentence == "With the trace of step 2 on, the difference vanished."


def test_a_module_is_named_with_class_file_and_line() -> None:
    found = planted(event_of("forward", "decoder.layers.0.mixer"))
    assert found.sentence == (
        "Step 2, rank 0, micro-batch 0, forward: decoder.layers.0.mixer (MambaMixer, "
        "megatron/core/ssm/mamba_mixer.py:40) is given the same on both sides, and comes to something else."
    )


def test_a_collective_that_hands_over_a_peers_difference_is_not_the_cause() -> None:
    """Rank 0's first difference is the collective's output; it comes from rank 1's module."""
    mixer = event_of("forward", "decoder.layers.1.mixer", rank=1)
    found = planted(mixer, rank=1)
    assert (found.rank, found.phase, found.module) == (1, "forward", "decoder.layers.1.mixer")


def test_a_collective_that_is_given_the_same_everywhere_is_the_cause() -> None:
    event = event_of("collective", "decoder.layers.0")
    everywhere = Step().trace()
    events = {
        rank: tuple(
            replace(each, outputs={"output": "ffffffffffffffff"}) if each.number == event.number else each
            for each in own
        )
        for rank, own in everywhere.events.items()
    }
    found = localise_traces(CLEAN, Trace(2, events))
    assert (found.outcome, found.phase, found.file) == (
        LocalisationOutcome.MODULE, "collective", "megatron/core/tensor_parallel/mappings.py"
    )  # fmt: skip
    assert "all_to_all within decoder.layers.0" in found.sentence


def test_the_backward_pass_is_told_from_the_forward_pass() -> None:
    found = planted(event_of("backward", "decoder.layers.1.mixer"))
    assert (found.phase, found.module) == ("backward", "decoder.layers.1.mixer")
    assert "comes to another gradient of input 0" in found.sentence


def test_the_optimizer_is_named_with_the_parameter() -> None:
    found = planted(event_of("optimizer", "decoder.layers.1.mixer"))
    assert (found.outcome, found.phase, found.module_class) == (LocalisationOutcome.MODULE, "optimizer", "Adam")
    assert "the optimizer's update of decoder.layers.1.mixer.weight" in found.sentence


def test_data_has_no_module() -> None:
    found = localise_traces(CLEAN, Step(batch="another").trace())
    assert (found.outcome, found.group, found.leaf) == (LocalisationOutcome.GROUP, "batch", "tokens")
    assert "it is the data, and no module" in found.sentence


def test_a_generator_that_is_ahead_has_no_module() -> None:
    found = localise_traces(CLEAN, Step(start={(1, "rng/device"): "00"}).trace())
    assert (found.outcome, found.rank, found.group) == (LocalisationOutcome.GROUP, 1, "rng")
    assert (found.leaf, found.module) == ("device", "")
    assert "more or fewer numbers were drawn" in found.sentence


def test_one_draw_too_many_between_two_modules_is_the_doing_of_the_code_around_them() -> None:
    """The dropout that reads the generator next is not to blame."""
    mixer = event_of("forward", "decoder.layers.1.mixer")
    events = tuple(
        replace(each, inputs={**each.inputs, "rng/device": "00"}, outputs={"output": "00"})
        if each.number == mixer.number
        else each
        for each in CLEAN.events[0]
    )
    found = localise_traces(CLEAN, replace(CLEAN, events={**CLEAN.events, 0: events}))
    assert (found.outcome, found.module) == (LocalisationOutcome.MODULE, "decoder.layers.1")
    assert "hands something else to decoder.layers.1.mixer: its own code makes the difference" in found.sentence


def test_a_weight_that_changed_is_not_blamed_on_the_module_that_reads_it() -> None:
    name = "parameters/decoder.layers.1.mixer.weight"
    mixer = event_of("forward", "decoder.layers.1.mixer")
    events = tuple(
        replace(each, inputs={**each.inputs, name: "00"}, outputs={"output": "00"})
        if each.number == mixer.number
        else each
        for each in CLEAN.events[0]
    )
    found = localise_traces(CLEAN, replace(CLEAN, events={**CLEAN.events, 0: events}))
    assert (found.outcome, found.group) == (LocalisationOutcome.GROUP, "parameters")
    assert found.leaf == "decoder.layers.1.mixer.weight"


def test_a_state_that_differs_before_step_1_is_the_initialisation() -> None:
    name = "parameters/decoder.layers.0.mixer.weight"
    found = localise_traces(Step(number=1).trace(), Step(number=1, start={(0, name): "00"}).trace())
    assert (found.outcome, found.group) == (LocalisationOutcome.BEFORE_STEP_1, "parameters")
    assert found.sentence == (
        "The difference is there already after the initialisation, rank 0: parameters differ "
        "(decoder.layers.0.mixer.weight)."
    )


def test_leaves_that_are_known_to_differ_are_left_out() -> None:
    other = Step(start={(rank, "rng/device"): "00" for rank in range(RANKS)}).trace()
    events = {
        rank: tuple(
            replace(each, outputs=clean.outputs if each.phase != "start" else each.outputs)
            for each, clean in zip(other.events[rank], CLEAN.events[rank], strict=True)
        )
        for rank in range(RANKS)
    }
    same = {
        rank: tuple(
            replace(each, inputs={**clean.inputs, **{k: v for k, v in each.inputs.items() if k == "rng/device"}})
            for each, clean in zip(own, CLEAN.events[rank], strict=True)
        )
        for rank, own in events.items()
    }
    found = localise_traces(CLEAN, Trace(2, same), frozenset({"rng/device"}))
    assert found.outcome is LocalisationOutcome.VANISHED


def test_a_call_that_takes_place_on_one_side_only_is_named() -> None:
    mixer = event_of("forward", "decoder.layers.1.mixer")
    found = localise_traces(CLEAN, without(CLEAN, 0, mixer.number))
    assert (found.outcome, found.module) == (LocalisationOutcome.MODULE, "decoder.layers.1.mixer")
    assert "takes place on the expected side only" in found.sentence


def test_what_no_traced_call_made_is_unknown() -> None:
    root = next(event for event in CLEAN.events[0] if event.module == "" and event.phase == "forward")
    events = tuple(
        replace(each, inputs={"input tokens": "00"}, outputs={"output": "00"}) if each.number == root.number else each
        for each in CLEAN.events[0]
    )
    found = localise_traces(CLEAN, replace(CLEAN, events={**CLEAN.events, 0: events}))
    assert found.outcome is LocalisationOutcome.UNKNOWN
    assert "so the module is unknown" in found.sentence


def test_traces_of_different_steps_say_nothing() -> None:
    assert localise_traces(CLEAN, Step(number=3).trace()).outcome is LocalisationOutcome.UNKNOWN


@pytest.mark.timeout(10)
def test_calls_that_are_within_each_other_end_the_search() -> None:
    """What is read refuses them; whoever hands over traces otherwise gets an answer all the same."""

    def side(given: str) -> Trace:
        calls = ((0, "inner", 2, 1), (1, "outer", 1, 2))
        events = (
            Event(number, "forward", 0, module, "", call, parent, {"input 0": given}, {"output": given})
            for number, module, call, parent in calls
        )
        return Trace(1, {0: tuple(events)})

    found = localise_traces(side("00"), side("11"))
    assert (found.outcome, found.module) == (LocalisationOutcome.UNKNOWN, "inner")


def test_a_state_of_no_group_that_there_is_has_no_name() -> None:
    start = event_of("start")
    sides = [
        tuple(
            replace(each, outputs={"{0.__class__}/w": digest, **each.outputs}) if each is start else each
            for each in CLEAN.events[0]
        )
        for digest in ("00", "11")
    ]
    expected, observed = (replace(CLEAN, events={**CLEAN.events, 0: side}) for side in sides)
    found = localise_traces(expected, observed)
    assert (found.outcome, found.group) == (LocalisationOutcome.UNKNOWN, "")
