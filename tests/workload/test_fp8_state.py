"""FP8's scales, amax histories and quantised tensors, and graph-safe generators, are state. With doubles of Transformer
Engine's modules: their attributes, and nothing else of theirs.
"""

from __future__ import annotations

import io
import pickle
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from validator.errors import LaunchError
from validator.trajectory.groups import Group
from validator.workload import megatron_internals
from validator.workload.coverage import Coverage, _contents
from validator.workload.digests import Digester
from validator.workload.module_tree import ModuleTree
from validator.workload.state import Leaf, TrainingState


class Linear(torch.nn.Module):  # type: ignore[misc]
    """As a linear layer of Transformer Engine 2.x with delayed scaling keeps its state."""

    def __init__(self, recipe: str = "delayed") -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4))
        self.register_buffer("bias_correction", torch.zeros(2))
        self.fp8_meta: dict[str, Any] = {"fp8_checkpoint": True, "num_gemms": 1, "recipe": recipe}
        if recipe == "delayed":
            for key in ("scaling_fwd", "scaling_bwd"):
                self.fp8_meta[key] = SimpleNamespace(scale=torch.ones(3), amax_history=torch.zeros(16, 3))

    def get_extra_state(self) -> torch.Tensor:
        """Pickled into a uint8 tensor, as there."""
        kept = {f"{name}_{key}": value.clone() for key in ("scaling_fwd", "scaling_bwd")
                for name, value in vars(self.fp8_meta[key]).items()}  # fmt: skip
        return torch.frombuffer(bytearray(pickle.dumps(kept)), dtype=torch.uint8)


class Layer(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, recipe: str = "delayed") -> None:
        super().__init__()
        self.linear = Linear(recipe)


class Quantised(torch.nn.Parameter):  # type: ignore[misc]
    """As a parameter that is kept in FP8: its values are made up when asked for, its bytes lie in ``_data``."""


def training_state(*chunks: torch.nn.Module) -> TrainingState:
    made = TrainingState.__new__(TrainingState)
    made.modules = list(chunks)
    made._trees = [ModuleTree(chunk) for chunk in chunks]
    made._shards = []
    return made


def quantised(**parts: torch.Tensor) -> Quantised:
    made = Quantised(torch.zeros(4))
    for name, part in parts.items():
        setattr(made, name, part)
    return made


SCALES = [
    "linear.fp8_meta.scaling_bwd.scale", "linear.fp8_meta.scaling_bwd.amax_history",
    "linear.fp8_meta.scaling_fwd.scale", "linear.fp8_meta.scaling_fwd.amax_history",
]  # fmt: skip


def test_scales_and_amax_histories_are_leaves_of_the_buffers() -> None:
    layer = Layer()
    leaves = list(training_state(layer)._buffers())
    assert [leaf.name for leaf in leaves] == ["linear.bias_correction", *SCALES]
    digester = Digester()
    before = digester.record(Group.BUFFERS, leaves)
    layer.linear.fp8_meta["scaling_fwd"].amax_history[5, 1] = 448.0
    after = digester.record(Group.BUFFERS, list(training_state(layer)._buffers()))
    changed = [key.name for index, key in enumerate(after.table.keys) if before.leaf(index) != after.leaf(index)]
    assert changed == ["linear.fp8_meta.scaling_fwd.amax_history"]


def test_chunks_of_a_pipeline_keep_theirs_apart() -> None:
    names = [leaf.name for leaf in training_state(Layer(), Layer())._buffers()]
    assert names[1].startswith("chunk0.linear.fp8_meta.")
    assert len(set(names)) == len(names) == 10


def test_other_recipes_and_other_modules_have_none() -> None:
    for module in (Layer("tensorwise"), torch.nn.Linear(2, 2)):
        assert list(megatron_internals.fp8_states(module.named_modules())) == []


def test_coverage_looks_for_every_scale() -> None:
    layer = Layer()
    digester, coverage = Digester(), Coverage()
    digester.record(
        Group.BUFFERS, [leaf for leaf in training_state(layer)._buffers() if "scaling_bwd.s" not in leaf.name]
    )
    for name, _ in training_state(layer).named_buffers():
        coverage._expect("buffers", name, digester.covers(Group.BUFFERS, name))
    assert coverage.report()["unmapped"] == ["buffers: linear.fp8_meta.scaling_bwd.scale"]


@pytest.mark.parametrize("as_file", [False, True])
def test_what_a_checkpoint_pickles_of_them_is_opened_and_found(as_file: bool) -> None:
    layer = Layer()
    layer.linear.fp8_meta["scaling_fwd"].scale += 1.5
    extra: Any = layer.linear.get_extra_state()
    if as_file:
        extra = io.BytesIO(bytes(extra.numpy()))
    found = dict(_contents({"model": {"linear._extra_state": SimpleNamespace(key="k", data=extra)}}))
    assert {name.rpartition("/")[2] for name in found} == {
        "scale_scaling_fwd", "scale_scaling_bwd", "amax_history_scaling_fwd", "amax_history_scaling_bwd"
    }  # fmt: skip
    (scale,) = [value for name, value in found.items() if name.endswith("scale_scaling_fwd")]
    assert torch.equal(scale, layer.linear.fp8_meta["scaling_fwd"].scale)


def test_an_empty_extra_state_holds_nothing() -> None:
    assert list(_contents({"a._extra_state": torch.empty(0, dtype=torch.uint8)})) == []


def test_a_quantised_parameter_is_its_bytes_and_its_scale() -> None:
    data, scale = torch.arange(4, dtype=torch.uint8), torch.tensor([0.5])
    parts = list(megatron_internals.plain_parts("w", quantised(_data=data, _scale_inv=scale)))
    assert [(name, part is wanted) for (name, part), wanted in zip(parts, (data, scale), strict=True)] == [
        ("w/_data", True), ("w/_scale_inv", True)
    ]  # fmt: skip
    blocks = quantised(_rowwise_data=data, _rowwise_scale_inv=scale, _columnwise_data=data, _columnwise_scale_inv=scale)
    assert [name for name, _ in megatron_internals.plain_parts("w", blocks)] == [
        "w/_rowwise_data",
        "w/_rowwise_scale_inv",
    ]
    only = quantised(_rowwise_data=None, _columnwise_data=data, _columnwise_scale_inv=scale)
    assert next(name for name, _ in megatron_internals.plain_parts("w", only)) == "w/_columnwise_data"


def test_a_quantised_parameter_without_known_data_is_refused() -> None:
    with pytest.raises(LaunchError, match="the quantised tensor w is a Quantised that holds no data"):
        list(megatron_internals.plain_parts("w", quantised(_rowwise_data=None)))


def test_an_ordinary_parameter_stays_what_it_is() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    ((name, part),) = megatron_internals.plain_parts("w", weight)
    assert (name, part is weight) == ("w", True)


def test_a_graph_safe_generator_is_read_as_its_state(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(3)
    monkeypatch.setattr(megatron_internals, "random_tracker_states", lambda: {"model-parallel-rng": generator})
    monkeypatch.setattr(torch.cuda, "get_rng_state", torch.get_rng_state)
    (leaf,) = [leaf for leaf in training_state()._rng() if leaf.name == "model-parallel-rng"]
    before = Digester().record(Group.RNG, [leaf]).digests
    torch.rand(1, generator=generator)
    (later,) = [leaf for leaf in training_state()._rng() if leaf.name == "model-parallel-rng"]
    assert isinstance(later, Leaf)
    assert Digester().record(Group.RNG, [later]).digests != before
