"""Traces made by hand: a small model whose every call is a hash of what it is given."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from validator.diagnose.traces import Event, Source, Trace

LAYERS = ("decoder.layers.0", "decoder.layers.1")
RANKS = 2
SOURCES = {
    "": Source("HybridModel", "megatron/core/models/hybrid/hybrid_model.py", 10),
    "decoder.layers.0": Source("MambaLayer", "megatron/core/ssm/mamba_layer.py", 20),
    "decoder.layers.1": Source("TransformerLayer", "megatron/core/transformer/transformer_layer.py", 30),
    "decoder.layers.0.mixer": Source("MambaMixer", "megatron/core/ssm/mamba_mixer.py", 40),
    "decoder.layers.1.mixer": Source("Attention", "megatron/core/transformer/attention.py", 50),
}


def mix(*parts: object) -> str:
    """16 hexadecimal digits that depend on every part."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()[:16]


@dataclass
class Step:
    """One step of all ranks. ``planted`` = (rank, number): this event's outputs come out otherwise.

    ``start`` overrides values of the state before the step, by rank and name.
    """

    planted: tuple[int, int] | None = None
    start: Mapping[tuple[int, str], str] = field(default_factory=dict)
    batch: str = ""
    number: int = 2

    def trace(self) -> Trace:
        """The step, carried out."""
        self.events: dict[int, list[Event]] = {rank: [] for rank in range(RANKS)}
        self.state = {
            rank: {name: self.start.get((rank, name), mix(name)) for name in ("rng/device", *self.parameters())}
            for rank in range(RANKS)
        }
        for rank in range(RANKS):
            self.emit(rank, "start", {}, dict(self.state[rank]))
        for micro_batch in range(2):
            tokens = {rank: mix("tokens", rank, micro_batch, self.batch) for rank in range(RANKS)}
            for rank in range(RANKS):
                tokens[rank] = self.emit(rank, "batch", {}, {"batch/tokens": tokens[rank]}, micro_batch=micro_batch)
            self.forward_backward(micro_batch, tokens)
        self.update()
        return Trace(self.number, {rank: tuple(events) for rank, events in self.events.items()})

    def parameters(self) -> list[str]:
        return [f"parameters/{layer}.mixer.weight" for layer in LAYERS]

    def forward_backward(self, micro_batch: int, hidden: dict[int, str]) -> None:
        given = dict(hidden)
        for at, layer in enumerate(LAYERS):
            entered = dict(hidden)
            for rank in range(RANKS):
                inputs = {
                    "input 0": hidden[rank],
                    "rng/device": self.state[rank]["rng/device"],
                    f"parameters/{layer}.mixer.weight": self.state[rank][f"parameters/{layer}.mixer.weight"],
                }
                hidden[rank] = self.call(
                    rank, "forward", f"{layer}.mixer", 10 * at + 2, 10 * at + 1, inputs, micro_batch
                )
            hidden = self.collective(hidden, f"all_to_all {micro_batch} {at}", layer, 10 * at + 1)
            for rank in range(RANKS):
                inputs = {"input 0": entered[rank], "rng/device": self.state[rank]["rng/device"]}
                outputs = {"output": mix("residual", hidden[rank], entered[rank])}
                hidden[rank] = self.emit(
                    rank, "forward", inputs, outputs, layer, call=10 * at + 1, parent=0, micro_batch=micro_batch
                )
        for rank in range(RANKS):
            inputs = {"input tokens": given[rank]}
            hidden[rank] = self.emit(
                rank, "forward", inputs, {"output": mix(hidden[rank])}, "", call=0, parent=None, micro_batch=micro_batch
            )
        gradients = {rank: mix("loss", hidden[rank]) for rank in range(RANKS)}
        for at, layer in reversed(list(enumerate(LAYERS))):
            for rank in range(RANKS):
                inputs = {"gradient of output": gradients[rank]}
                gradients[rank] = self.call(
                    rank,
                    "backward",
                    f"{layer}.mixer",
                    10 * at + 2,
                    10 * at + 1,
                    inputs,
                    micro_batch,
                    "gradient of input 0",
                )
                self.state[rank][f"gradient/{layer}"] = mix(
                    self.state[rank].get(f"gradient/{layer}", ""), gradients[rank]
                )

    def update(self) -> None:
        for at, layer in enumerate(LAYERS):
            gradient = {rank: self.state[rank][f"gradient/{layer}"] for rank in range(RANKS)}
            gradient = self.collective(gradient, f"reduce_scatter {at}", "", None)
            for rank in range(RANKS):
                name = f"{layer}.mixer.weight"
                inputs = {
                    f"gradients/{name}": gradient[rank],
                    f"main_parameters/{name}": self.state[rank][f"parameters/{name}"],
                }
                outputs = {f"parameters/{name}": mix(*inputs.values())}
                self.state[rank][f"parameters/{name}"] = self.emit(
                    rank, "optimizer", inputs, outputs, f"{layer}.mixer", name=name,
                    source=Source("Adam", "validator/workload/adam.py", 60),
                )  # fmt: skip
        for rank in range(RANKS):
            self.emit(rank, "end", {}, {name: self.state[rank][name] for name in self.parameters()})

    def call(
        self, rank: int, phase: str, module: str, call: int, parent: int, inputs: dict[str, str], micro_batch: int,
        result: str = "output",
    ) -> str:  # fmt: skip
        outputs = {result: mix(phase, module, *inputs.values())}
        return self.emit(rank, phase, inputs, outputs, module, call=call, parent=parent, micro_batch=micro_batch)

    def collective(self, values: dict[int, str], name: str, module: str, parent: int | None) -> dict[int, str]:
        """Everybody gets what depends on everybody's."""
        sources = Source("all_to_all", "megatron/core/tensor_parallel/mappings.py", 70)
        return {
            rank: self.emit(
                rank, "collective", {"input": values[rank]}, {"output": mix(rank, *values.values())}, module,
                parent=parent, name=name.partition(" ")[0], source=sources, ranks=(0, 1), kind=name, nth=0,
            )
            for rank in range(RANKS)
        }  # fmt: skip

    def emit(
        self, rank: int, phase: str, inputs: dict[str, str], outputs: dict[str, str], module: str = "", **more: Any
    ) -> str:
        number = len(self.events[rank])
        if self.planted == (rank, number):
            outputs = {name: mix("planted", value) for name, value in outputs.items()}
        calls = {"call": None, "parent": None, "name": "", "micro_batch": None, **more}
        source = calls.pop("source", SOURCES.get(module, Source()) if phase in ("forward", "backward") else Source())
        self.events[rank].append(
            Event(number=number, phase=phase, module=module, inputs=inputs, outputs=outputs, source=source, **calls)
        )
        # What differs is handed on. The state before a step is the recorder's to read, and the plant's to change.
        if phase == "start":
            self.state[rank].update(outputs)
        return next(iter(outputs.values()))


def without(trace: Trace, rank: int, number: int) -> Trace:
    """The trace as if one call had not taken place on one rank."""
    events = tuple(event for event in trace.events[rank] if event.number != number)
    return replace(trace, events={**trace.events, rank: events})


def write(trace: Trace, folder: Path) -> Path:
    """The trace as a launch leaves it."""
    folder.mkdir(parents=True)
    for rank, events in trace.events.items():
        header = {
            "schema": "validator/trace", "version": 1, "step": trace.step, "rank": rank, "world_size": len(trace.events)
        }  # fmt: skip
        lines: list[Mapping[str, object]] = [header]
        lines += [
            {
                "event": event.number, "phase": event.phase, "micro_batch": event.micro_batch,
                "module": event.module, "name": event.name, "call": event.call, "parent": event.parent,
                "inputs": event.inputs, "outputs": event.outputs, "ranks": event.ranks, "nth": event.nth,
                "kind": event.kind, "class": event.source.name, "file": event.source.file,
                "line": event.source.line,
            }
            for event in events
        ]  # fmt: skip
        lines.append({"end": True, "events": len(events)})
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"rank-{rank:05d}.jsonl").write_text(text)
    return folder
