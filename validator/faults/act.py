"""What a fault may do inside a launch: act at a moment, change what a function gives, say what it touched."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, final

import torch

from validator.faults.model import STEP
from validator.workload import megatron_internals
from validator.workload.megatron_internals import Hooks, OwnedShard
from validator.workload.state import TrainingState

if TYPE_CHECKING:
    from validator.workload.recorder import Recorder


@final
class Scene:
    """One rank of a launch that a fault acts in. Faults are installed after the recorder: what they change at a moment
    is what the recorder then reads.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.request = recorder.request
        self.rank = recorder.rank
        self.last_rank = recorder.request.ranks - 1
        self.step = 0
        self._touched = recorder.request.touched_file(recorder.rank)
        megatron_internals.observe_training(Hooks(before_step=self._enter))

    @property
    def state(self) -> TrainingState:
        return self.recorder.state

    @property
    def acts(self) -> bool:
        """Whether the step of the fault is being computed."""
        return self.step == STEP

    def after_step(self, action: Callable[[], None], step: int = STEP) -> None:
        """Act when ``step`` is done, before its state is read."""

        def act(done: int) -> None:
            if done == step:
                action()

        megatron_internals.observe_training(Hooks(before_step=act))

    def at_update(self, action: Callable[[], None], step: int = STEP) -> None:
        """Act when the gradients of ``step`` are reduced, before they are read and used."""

        def act() -> None:
            if self.step == step:
                action()

        megatron_internals.observe_training(Hooks(before_update=act))

    def after_restore(self, action: Callable[[TrainingState], None]) -> None:
        """Act when a checkpoint has been loaded, before what was restored is read."""
        load = megatron_internals.require("megatron.training.training", "load_checkpoint")
        get_args = megatron_internals.require("megatron.training", "get_args")

        def loaded(model: Any, optimizer: Any, scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            result = load(model, optimizer, scheduler, *args, **kwargs)
            action(TrainingState(model, optimizer, scheduler, get_args()))
            return result

        self.replace("megatron.training.training", "load_checkpoint", lambda _: loaded)

    def replace(self, module: str, name: str, make: Callable[[Any], Any]) -> None:
        """Put ``make(original)`` in the place of what ``module`` looks up as ``name`` (dotted) at every call."""
        original = megatron_internals.require(module, name)
        holder: Any = importlib.import_module(module)
        *path, last = name.split(".")
        for part in path:
            holder = getattr(holder, part)
        setattr(holder, last, make(original))

    def forward_of(self, pattern: str, change: Callable[..., Any]) -> None:
        """At the fault's step, ``change(forward, …)`` in the place of the first matching module's forward pass."""

        def setup(*_: Any) -> None:
            found = self.module(pattern)
            if found is None:
                return
            forward = found.forward

            def changed(*args: Any, **kwargs: Any) -> Any:
                return change(forward, *args, **kwargs) if self.acts else forward(*args, **kwargs)

            found.forward = changed

        megatron_internals.observe_training(Hooks(on_setup=setup))

    def module(self, pattern: str) -> Any:
        """The first module whose path matches ``pattern``; ``None`` where this rank has none."""
        for chunk in self.state.modules:
            for name, module in chunk.named_modules():
                if fnmatchcase(name, pattern):
                    return module
        return None

    def shards(self, pattern: str = "*") -> Iterator[tuple[str, OwnedShard]]:
        """The parameter shards that this rank owns and whose names match."""
        for name, shard in self.state.shards():
            if fnmatchcase(name, pattern):
                yield name, shard

    def touched(self, **what: Any) -> None:
        """Say what was changed, for those who judge whether it was found."""
        with self._touched.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"rank": self.rank, "step": self.step, **what}) + "\n")

    def _enter(self, done: int) -> None:
        self.step = done + 1


def through_bf16(tensor: torch.Tensor) -> None:
    """Round in place to what bfloat16 can hold."""
    tensor.copy_(tensor.bfloat16().to(tensor.dtype))


def other_order(gradient: torch.Tensor) -> torch.Tensor:
    """The same sum of three addends in another order."""
    first, second = gradient * 0.3, gradient * 0.45
    third = gradient - first - second
    return (third + second) + first


def next_up(tensor: torch.Tensor, index: int = 0) -> None:
    """Move one element of a contiguous float32 tensor by one unit in the last place."""
    tensor.view(-1).view(torch.int32)[index] += 1
