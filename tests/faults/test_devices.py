"""Faults act on the device that training computes on. The device here is ``meta``, whose tensors mix with no others."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from validator.faults import CATALOGUE, act
from validator.workload import megatron_internals

META = torch.device("meta")


class Stage:
    """In the place of a ``Scene``: keeps what a fault asks for, so that a test calls it."""

    def __init__(self, recorder: Any) -> None:
        self.rank = self.last_rank = 0
        self.recorder = recorder

    def forward_of(self, pattern: str, change: Callable[..., Any]) -> None:
        self.recorder.asked = change

    def after_step(self, action: Callable[..., Any], step: int = 3) -> None:
        self.recorder.asked = action

    def after_restore(self, action: Callable[..., Any]) -> None:
        self.recorder.asked = action

    at_update = after_step

    def module(self, pattern: str) -> Any:
        return self.recorder.module

    def shards(self, pattern: str) -> Any:
        return self.recorder.shards


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[..., Any]]:
    """What a fault of this name asks to be called, installed in a launch on ``device``."""
    monkeypatch.setattr(act, "Scene", Stage)

    def install(name: str, device: str = "cuda", **held: Any) -> Callable[..., Any]:
        recorder = SimpleNamespace(request=SimpleNamespace(device=device), asked=None, **held)
        CATALOGUE[name].install(recorder)
        given: Callable[..., Any] | None = recorder.asked
        assert given is not None
        return given

    return install


@pytest.fixture
def generators(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The devices of all generators that are made; each draws on the CPU."""
    devices: list[str] = []
    make = torch.Generator

    def made(device: Any = "cpu") -> torch.Generator:
        devices.append(str(device))
        return make()

    monkeypatch.setattr(torch, "Generator", made)
    return devices


def test_an_expert_drops_its_last_token_on_its_device(asked: Any) -> None:
    change = asked("expert-capacity-off-by-one")
    output, _ = change(lambda tokens, _: (tokens, None), torch.ones(3, 4, device=META), None)
    assert output.device == META
    output, _ = change(lambda tokens, _: (tokens, None), torch.ones(3, 2), None)
    assert output.tolist() == [[1, 1], [1, 1], [0, 0]]


def test_tokens_are_turned_round_on_their_device(asked: Any) -> None:
    change, counts = asked("expert-slot-order"), torch.tensor([2, 1])
    given: list[torch.Tensor] = []

    def forward(tokens: torch.Tensor, _: Any, __: Any) -> Any:
        given.append(tokens)
        return tokens, None

    output, _ = change(forward, torch.ones(3, 4, device=META), counts, torch.ones(3, device=META))
    assert output.device == META
    change(forward, torch.tensor([1.0, 2.0, 3.0]), counts, torch.ones(3))
    assert given[-1].tolist() == [2.0, 1.0, 3.0]


def test_ties_are_broken_on_the_device_of_the_logits(
    asked: Any, generators: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "rand", lambda shape, generator, device: torch.zeros(shape, device=device))
    router = SimpleNamespace(gating=lambda given: given)
    change = asked("router-ties-by-time", module=router)

    def forward(given: torch.Tensor) -> torch.Tensor:
        noisy: torch.Tensor = router.gating(given)
        return noisy

    assert change(forward, torch.ones(2, 3, device=META)).device == META
    assert generators == ["meta"]


def test_fresh_memory_is_that_of_the_gradient(asked: Any) -> None:
    gradient = torch.ones(2, 3, device=META)
    asked("uninitialised-memory", shards=[("weight", SimpleNamespace(gradient=gradient))])()
    assert gradient.device == META


def test_one_draw_more_is_one_of_the_devices(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(torch, "rand", lambda *_, device: drawn.append(device))
    asked("rng-one-draw-more")(lambda given: given, torch.ones(2, device=META))
    assert drawn == [META]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_lost_state_has_the_size_that_the_device_wants(
    asked: Any, generators: list[str], monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    put: list[torch.Tensor] = []
    monkeypatch.setattr(torch.cuda, "set_rng_state", put.append)
    asked("rng-device-lost", device)(None)
    assert generators == [device]
    assert torch.equal(put[0], torch._C.Generator().manual_seed(0).get_state())


@pytest.mark.parametrize("graph_safe", [False, True])
def test_a_named_generator_leaks_and_draws_however_it_is_kept(
    asked: Any, monkeypatch: pytest.MonkeyPatch, graph_safe: bool
) -> None:
    kept = torch.Generator().manual_seed(3)
    before = kept.get_state()
    states = {"model-parallel-rng": kept if graph_safe else before.clone()}
    put: list[Any] = []
    monkeypatch.setattr(megatron_internals, "random_tracker_states", lambda: states)
    monkeypatch.setattr(megatron_internals, "set_random_tracker_states", put.append)
    monkeypatch.setattr(torch.cuda, "set_rng_state", put.append)
    asked("rng-leaking-fork", "cpu")()
    assert torch.equal(put[0], before)
    asked("rng-tracker-one-draw-more", "cpu")()
    torch.rand(1, generator=kept)
    assert torch.equal(put[1]["model-parallel-rng"], kept.get_state())
