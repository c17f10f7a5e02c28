"""Gradients on their way back: hooks on tensors, which read a gradient and leave the graph of autograd as it is.

One tensor is often the output of several modules, one within the other, and the input of others. Its gradient is
digested once; for the modules that gave it away it is what their backward pass begins with, for those that took it,
what their backward pass results in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from validator.workload.trace_events import Call, TraceWriter, digest


@dataclass(slots=True, eq=False)
class _Watch:
    """One version of one tensor: who gave it away, and who took it."""

    version: int
    gave: list[tuple[Call, str]] = field(default_factory=list)
    took: list[tuple[Call, str]] = field(default_factory=list)


class Gradients:
    """Listens to the gradients of what modules take and give, and of their own parameters."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer
        self._watches: Any = WeakIdKeyDictionary()
        self._calls: dict[str, list[Call]] = {}
        self._handles: list[Any] = []
        self.active = True

    def took(self, call: Call, name: str, tensor: Tensor) -> None:
        """A module was given this tensor."""
        if tensor.requires_grad:
            self._watch(tensor).took.append((call, name))

    def gave(self, call: Call, name: str, tensor: Tensor) -> None:
        """A module returned this tensor."""
        if tensor.requires_grad:
            self._watch(tensor).gave.append((call, name))

    def called(self, call: Call) -> None:
        """A module was called whose parameters' gradients are looked at."""
        self._calls.setdefault(call.module, []).append(call)

    def parameter(self, module: str, name: str, parameter: Tensor) -> None:
        """Look at the gradient of a parameter as each backward pass hands it over, before it is accumulated."""
        if not parameter.requires_grad:
            return

        known: set[int] = set()

        def arrived(gradient: Tensor) -> None:
            if not self.active:
                return
            # One gradient is of all calls whose backward pass has come this far since the one before.
            every = self._calls.get(module, ())
            calls = [call for call in every if call.gradients and call.number not in known]
            known.update(call.number for call in calls)
            inputs = {
                f"{key} (call {at})": value for at, call in enumerate(calls) for key, value in call.gradients.items()
            }
            outputs = {f"gradient of {name}": digest(gradient)}
            self._writer.event("backward", calls[0] if calls else None, inputs, outputs, name=name, module=module)

        self._handles.append(parameter.register_hook(arrived))  # type: ignore[no-untyped-call]

    def remove(self) -> None:
        """Stop listening. Hooks on tensors of the step go with these tensors."""
        self.active = False
        for handle in self._handles:
            handle.remove()

    def _watch(self, tensor: Tensor) -> _Watch:
        watch: _Watch | None = self._watches.get(tensor)
        # A tensor written to in place is another point of the graph from then on.
        if watch is None or watch.version != tensor._version:
            watch = self._watches[tensor] = _Watch(tensor._version)
            found = watch

            def arrived(gradient: Tensor) -> None:
                if self.active:
                    self._arrived(found, digest(gradient))

            tensor.register_hook(arrived)  # type: ignore[no-untyped-call]
        return watch

    def _arrived(self, watch: _Watch, value: str) -> None:
        for call, name in watch.gave:
            call.gradients[f"gradient of {name}"] = value
        givers = {call for call, _ in watch.gave}
        takers = sorted(
            ((call, name) for call, name in watch.took if call not in givers), key=lambda each: -each[0].depth
        )
        for call, name in takers:
            self._writer.event("backward", call, dict(call.gradients), {f"gradient of {name}": value})
        if not takers and watch.gave:
            # Used by no module: by the code of the one around those that gave it away.
            inner, name = max(watch.gave, key=lambda each: each[0].depth)
            around = inner.parent
            while around is not None and around in givers:
                around = around.parent
            inputs = {} if around is None else dict(around.gradients)
            of = inner.module or "the model"
            self._writer.event(
                "backward", around, inputs, {f"gradient of {of} {name}": value}, micro_batch=inner.micro_batch
            )
