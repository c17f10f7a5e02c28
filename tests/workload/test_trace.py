"""Hooks of a trace on small modules: what they note, and that nothing of what is computed changes."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.workload.isolated import isolated


def test_a_trace_notes_calls_and_gradients_and_changes_neither_gradients_nor_graph(tmp_path: Path) -> None:
    isolated(_modules, str(tmp_path))


def test_collectives_are_read_when_they_are_done_and_digests_tell_bits_apart(tmp_path: Path) -> None:
    isolated(_values, str(tmp_path))


def _modules(folder: str) -> None:
    _notes(folder)
    _changes_nothing(folder)


def _values(folder: str) -> None:
    _digests()
    _collectives(folder)


def _model() -> Any:
    """Two linear layers in a block with a residual connection, and a layer that is called twice."""
    import torch

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(4, 4)
            self.second = torch.nn.Linear(4, 4)

        def forward(self, hidden: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
            return hidden + self.second(torch.tanh(self.first(hidden))) * scale

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()
            self.last = torch.nn.Linear(4, 4)
            self.register_buffer("seen", torch.zeros(1))

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            self.seen += 1
            return self.last(self.last(self.block(hidden, scale=0.5)))

    torch.manual_seed(3)
    return Model()


def _tracer(folder: str) -> Any:
    from validator.workload.launch import prepare_device

    prepare_device("cpu")
    from validator.workload.trace import Tracer

    place = Path(folder) / "trace"
    request = SimpleNamespace(
        trace=1, ranks=1, trace_directory=place, trace_file=lambda rank: place / f"rank-{rank:05d}.jsonl"
    )
    return Tracer(request, 0)  # type: ignore[arg-type]


def _traced(model: Any, folder: str) -> list[dict[str, Any]]:
    """One forward and backward pass under a trace; its events."""
    import torch

    tracer = _tracer(folder)
    for path, module in model.named_modules():
        tracer.watch(path, module)
    model(torch.linspace(-1, 1, 8).view(2, 4).requires_grad_()).square().sum().backward()
    tracer._gradients.remove()
    tracer._writer.write(tracer._file)
    lines = [json.loads(line) for line in tracer._file.read_text().splitlines()]
    return [line for line in lines if "event" in line]


def _notes(folder: str) -> None:
    events = _traced(_model(), folder)
    forward = [event["module"] for event in events if event["phase"] == "forward"]
    assert forward == ["block.first", "block.second", "block", "last", "last", ""]
    block = next(event for event in events if event["module"] == "block")
    assert {"input 0", "input scale"} <= set(block["inputs"])
    assert not [name for name in block["inputs"] if name.startswith("parameters/")]
    first = next(event for event in events if event["module"] == "block.first")
    assert {"parameters/block.first.weight", "parameters/block.first.bias", "rng/device"} <= set(first["inputs"])
    assert first["parent"] == block["call"]
    root = next(event for event in events if event["module"] == "" and event["phase"] == "forward")
    assert root["inputs"]["buffers/seen"] != root["outputs"]["buffers/seen"]

    backward = [(event["module"], next(iter(event["outputs"]))) for event in events if event["phase"] == "backward"]
    order = [backward.index(place) for place in (
        ("last", "gradient of input 0"), ("block.second", "gradient of input 0"), ("block.first", "gradient of input 0")
    )]  # fmt: skip
    assert order == sorted(order)
    # The layer that is called twice has one gradient of its weight, of both calls.
    weights = [event for event in events if event["module"] == "last" and event["name"] == "weight"]
    assert len(weights) == 1
    assert len(weights[0]["inputs"]) == 2
    # tanh belongs to the block: the gradient of what went into it is the block's own doing.
    own = [event for event in events if "gradient of block.first output" in event["outputs"]]
    assert [event["module"] for event in own] == ["block"]


def _changes_nothing(folder: str) -> None:
    import torch

    def nodes(root: Any, seen: dict[int, str]) -> list[str]:
        if root is None or id(root) in seen:
            return []
        seen[id(root)] = root.name()
        return [root.name(), *(name for child, _ in root.next_functions for name in nodes(child, seen))]

    def result(traced: bool) -> tuple[list[Any], list[str]]:
        model = _model()
        if traced:
            tracer = _tracer(folder)
            for path, module in model.named_modules():
                tracer.watch(path, module)
        given = torch.linspace(-1, 1, 8).view(2, 4).requires_grad_()
        output = model(given)
        graph = nodes(output.grad_fn, {})
        output.square().sum().backward()
        return [output.detach(), given.grad, *(parameter.grad for parameter in model.parameters())], graph

    (plain, graph), (seen, graph_seen) = result(False), result(True)
    assert graph == graph_seen
    assert len(plain) == len(seen) == 8
    assert all(torch.equal(left, right) for left, right in zip(plain, seen, strict=True))


def _collectives(folder: str) -> None:
    import torch
    from torch.testing._internal.distributed.fake_pg import FakeStore

    from validator.workload.trace_collectives import Collectives
    from validator.workload.trace_events import TraceWriter, digest

    torch.distributed.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    original = torch.distributed.all_reduce
    writer = TraceWriter(1, 0, 2)
    collectives = Collectives(writer, 0, lambda: None)
    collectives.install()
    tensor = torch.arange(4.0)
    before = digest(tensor)
    torch.distributed.all_reduce(tensor)
    work = torch.distributed.all_reduce(tensor, async_op=True)
    tensor += 1
    after = digest(tensor)
    work.wait()
    torch.distributed.all_gather_into_tensor(torch.zeros(8), tensor)
    torch.distributed.all_reduce(tensor, group=torch.distributed.new_group([0]))
    never_waited_for = torch.distributed.all_reduce(tensor, async_op=True)
    collectives.remove()
    assert never_waited_for is not None
    assert torch.distributed.all_reduce is original
    file = Path(folder) / "trace.jsonl"
    writer.write(file)
    events = [each for each in map(json.loads, file.read_text().splitlines()) if "event" in each]
    assert [event["name"] for event in events] == ["all_reduce", "all_reduce", "all_gather_into_tensor", "all_reduce"]
    assert [event["nth"] for event in events] == [0, 1, 0, 2]
    assert all(event["ranks"] == [0, 1] for event in events)
    assert events[0]["inputs"] == {"tensor": before}
    assert (events[1]["inputs"], events[1]["outputs"]) == ({"tensor": before}, {"tensor": after})


def _digests() -> None:
    import torch

    from validator.workload.trace_events import digest, digests

    zero = torch.zeros(4)
    values = [zero, -zero, zero.to(torch.bfloat16), zero.view(2, 2), torch.tensor([0.0, 0.0, 0.0, float("nan")])]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(torch.arange(6.0).view(2, 3).t()) == digest(torch.arange(6.0).view(2, 3).t().contiguous())
    assert digest(torch.empty(4, device="meta")) == "unreadable"
    nested = digests({"input 0": ({"mask": zero}, [1, 2.0, None])})
    assert set(nested) == {"input 0 0 mask", "input 0 1 0", "input 0 1 1"}
