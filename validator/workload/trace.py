"""A trace of one training step on one rank: what every module, collective and optimizer was given and what it made of
it, by digest, in the order in which each came to its end.

A module's own parameters and buffers, and the states of the generators, count among what it is given: a weight that
changed, or a draw too many before it, is not the doing of the module that reads it. Tensors of the step are read
through hooks, and nothing of what is computed changes.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from validator.execute.request import LaunchRequest
from validator.trajectory.groups import PERSISTENT_GROUPS, Group
from validator.workload import megatron_internals, step
from validator.workload.digests import plain_torch
from validator.workload.state import TrainingState
from validator.workload.trace_collectives import Collectives
from validator.workload.trace_events import (
    Call,
    Digests,
    TraceWriter,
    arguments,
    digest,
    digests,
    leaf,
    source_of_class,
    source_of_function,
    tensors,
)
from validator.workload.trace_gradients import Gradients
from validator.workload.trace_update import Update


def install(request: LaunchRequest, rank: int) -> None:
    """Trace the step that ``request.trace`` names, and only that one."""
    tracer = Tracer(request, rank)
    step.observe(tracer.on_batch, lambda _: None)
    megatron_internals.observe_training(
        megatron_internals.Hooks(
            on_setup=tracer.on_setup,
            before_step=tracer.before_step,
            before_update=tracer.before_update,
            after_step=lambda *_: tracer.after_step(),
            after_update=tracer.after_update,
        )
    )


class Tracer:
    """Puts its hooks in place when the step begins, and takes them away when it is over."""

    def __init__(self, request: LaunchRequest, rank: int) -> None:
        assert request.trace is not None
        self._step = request.trace
        self._file = request.trace_file(rank)
        self._rank = rank
        self._writer = TraceWriter(request.trace, rank, request.ranks)
        self._gradients = Gradients(self._writer)
        self._collectives = Collectives(self._writer, rank, lambda: self._stack[-1] if self._stack else None)
        self._state: TrainingState | None = None
        self._update: Update | None = None
        self._stack: list[Call] = []
        self._numbers = itertools.count()
        self._micro_batch = -1
        self._active = False
        self._undo: list[Callable[[], None]] = []

    def on_setup(self, model: list[Any], optimizer: Any, scheduler: Any, args: Any) -> None:
        """Model and optimizer are built."""
        self._state = TrainingState(model, optimizer, scheduler, args)

    def on_batch(self, batch: Mapping[str, Tensor | None]) -> None:
        """The forward pass is given a micro-batch."""
        if self._active:
            self._micro_batch += 1
            found = {f"batch/{name}": digest(tensor) for name, tensor in sorted(batch.items()) if tensor is not None}
            self._writer.event("batch", None, {}, found, micro_batch=self._micro_batch)

    def before_step(self, done: int) -> None:
        """The loop is about to enter ``train_step``."""
        if done + 1 != self._step or self._state is None:
            return
        self._active = True
        self._writer.event("start", None, {}, self._groups(PERSISTENT_GROUPS))
        for path, module in self._modules():
            self.watch(path, module)
        for function in megatron_internals.functions_outside_modules():
            self._undo.append(megatron_internals.replace_everywhere(function, self._observed(function)))
        self._undo.append(megatron_internals.replace_finalizer(self._state.modules, self._observed))
        self._collectives.install()

    def before_update(self) -> None:
        """Gradients are reduced, and the update is about to begin."""
        if self._active and self._state is not None:
            self._update = Update(self._writer, self._state, self._enter("", None))

    def after_update(self) -> None:
        """The update has come to its end."""
        if self._active and self._update is not None:
            self._leave(self._update.call)
            with plain_torch():
                self._update.finish()

    def after_step(self) -> None:
        """``train_step`` has returned: what is left of the step, and the file."""
        if not self._active:
            return
        self._active = False
        self._gradients.remove()
        self._collectives.remove()
        for undo in reversed(self._undo):
            undo()
        groups = (Group.PARAMETERS, Group.MAIN_PARAMETERS, Group.OPTIMIZER, Group.BUFFERS, Group.RNG)
        self._writer.event("end", None, {}, self._groups(groups))
        self._writer.write(self._file)

    def _modules(self) -> list[tuple[str, torch.nn.Module]]:
        assert self._state is not None
        several = len(self._state.modules) > 1
        return [
            ((f"chunk{index}." if several else "") + path, module)
            for index, chunk in enumerate(self._state.modules)
            for path, module in chunk.named_modules()
        ]

    def _groups(self, groups: tuple[Group, ...]) -> Digests:
        assert self._state is not None
        with plain_torch():
            return {f"{group}/{found.name}": leaf(found) for group in groups for found in self._state.leaves(group)}

    def watch(self, path: str, module: torch.nn.Module) -> None:
        """Note every call of a module, and the gradients that come back to it."""
        prefix = f"{path}." if path else ""
        own = {f"parameters/{prefix}{name}": value for name, value in module.named_parameters(recurse=False)}
        own |= {f"buffers/{prefix}{name}": value for name, value in module._buffers.items() if value is not None}
        calls: list[Call] = []

        def enter(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            call = self._enter(path, self._micro_batch)
            calls.append(call)
            given = arguments(args, kwargs)
            call.inputs = digests(given) | {name: digest(value) for name, value in own.items()} | self._random()
            if torch.is_grad_enabled():
                for name, value in given.items():
                    for where, tensor in tensors(value, name):
                        self._gradients.took(call, where, tensor)
                self._gradients.called(call)

        def leave(_: Any, __: Any, ___: Any, output: Any) -> None:
            call = calls.pop()
            self._leave(call)
            self._writer.module(path, lambda: source_of_class(type(module)))
            buffers = {name: digest(value) for name, value in own.items() if name.startswith("buffers/")}
            self._writer.event("forward", call, call.inputs, digests({"output": output}) | buffers | self._random())
            if torch.is_grad_enabled():
                for where, tensor in tensors(output, "output"):
                    self._gradients.gave(call, where, tensor)

        handles = [
            module.register_forward_pre_hook(enter, with_kwargs=True),
            module.register_forward_hook(leave, with_kwargs=True),
        ]
        self._undo += [handle.remove for handle in handles]
        for name, parameter in module.named_parameters(recurse=False):
            self._gradients.parameter(path, name, parameter)

    def _observed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, looked at like a module: what it is given by its arguments and by the models among them."""
        source, is_loss = source_of_function(function), function.__name__ == "loss_function"

        @functools.wraps(function)
        def observed(*args: Any, **kwargs: Any) -> Any:
            given = arguments(args, kwargs)
            call = self._enter("", None)
            call.inputs = digests(given) | self._models(given)
            try:
                result = function(*args, **kwargs)
            finally:
                self._leave(call)
            written = {f"{name} afterwards": value for name, value in digests(given).items()}
            outputs = digests({"output": result}) | written | self._models(given)
            self._writer.event(
                "forward" if is_loss else "optimizer", call, call.inputs, outputs, name=function.__name__,
                source=source, micro_batch=self._micro_batch if is_loss else None,
            )  # fmt: skip
            return result

        return observed

    def _models(self, given: Mapping[str, Any]) -> Digests:
        """Accumulated gradients and buffers, where models are among the arguments; gradients of tensors among them."""
        found: Digests = {}
        for name, value in given.items():
            several = value if isinstance(value, (list, tuple)) else [value]
            if any(isinstance(one, torch.nn.Module) for one in several):
                assert self._state is not None
                for where, parameter in self._state.named_parameters():
                    if isinstance(gradient := getattr(parameter, "main_grad", None), Tensor):
                        found[f"gradients/{where}"] = digest(gradient)
                found |= {f"buffers/{where}": digest(buffer) for where, buffer in self._state.named_buffers()}
            else:
                for where, tensor in tensors(value, name):
                    if tensor.is_leaf and isinstance(tensor.grad, Tensor):
                        found[f"gradient of {where}"] = digest(tensor.grad)
        return found

    def _random(self) -> Digests:
        """States of the generators that a forward pass on the device draws from."""
        with plain_torch():
            found = {"rng/device": digest(torch.cuda.get_rng_state())}
            for name, state in megatron_internals.random_tracker_states().items():
                found[f"rng/{name}"] = digest(state if isinstance(state, Tensor) else state.get_state())
        return found

    def _enter(self, path: str, micro_batch: int | None) -> Call:
        call = Call(next(self._numbers), path, self._stack[-1] if self._stack else None, micro_batch)
        self._stack.append(call)
        return call

    def _leave(self, call: Call) -> None:
        while self._stack and self._stack.pop() is not call:
            pass
