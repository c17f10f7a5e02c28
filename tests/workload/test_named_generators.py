"""Megatron's named generators are read, copied and set in both ways that they are kept: states, and generators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from validator.workload import megatron_internals
from validator.workload.megatron_internals import generators

NAME = "model-parallel-rng"


class Tracker:
    """As Megatron's: hands out what it keeps, and keeps what it is given."""

    def __init__(self, kept: Any) -> None:
        self.kept = {NAME: kept}

    def get_states(self) -> dict[str, Any]:
        return dict(self.kept)

    def set_states(self, states: Mapping[str, Any]) -> None:
        self.kept = dict(states)


def state(seed: int) -> torch.Tensor:
    return torch.Generator().manual_seed(seed).get_state()


def tracker(monkeypatch: pytest.MonkeyPatch, kept: Any) -> Tracker:
    made = Tracker(kept)
    monkeypatch.setattr(generators, "require", lambda *_: lambda: made)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: state(5))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda _: None)
    return made


def test_states_are_copied_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tracker(monkeypatch, state(1))
    taken = megatron_internals.generator_states()
    made.kept[NAME].zero_()
    megatron_internals.set_generator_states(taken)
    assert torch.equal(made.kept[NAME], state(1))
    assert made.kept[NAME] is not taken["named"][NAME]


def test_graph_safe_generators_are_copied_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tracker(monkeypatch, torch.Generator().manual_seed(1))
    taken = megatron_internals.generator_states()
    torch.rand(3, generator=made.kept[NAME])
    assert torch.equal(taken["named"][NAME].get_state(), state(1))
    megatron_internals.set_generator_states(taken)
    assert isinstance(made.kept[NAME], torch.Generator)
    assert torch.equal(made.kept[NAME].get_state(), state(1))
    torch.rand(3, generator=made.kept[NAME])
    assert torch.equal(taken["named"][NAME].get_state(), state(1))


def test_a_state_becomes_a_generator_where_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tracker(monkeypatch, torch.Generator().manual_seed(1))
    megatron_internals.set_random_tracker_states({NAME: state(2)})
    assert isinstance(made.kept[NAME], torch.Generator)
    assert torch.equal(megatron_internals.state_tensor(made.kept[NAME]), state(2))
