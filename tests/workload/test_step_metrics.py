"""Metrics keep their exact bits."""

from __future__ import annotations

import math
import struct
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from validator.trajectory.metrics import Metric
from validator.workload.step_metrics import StepMetrics, metric_of, on_host


@pytest.mark.parametrize(
    ("value", "dtype", "bits"),
    [
        (torch.tensor(1.0), "float32", "3f800000"),
        (torch.tensor([-0.0]), "float32", "80000000"),
        (torch.tensor([[0.0]]), "float32", "00000000"),
        (torch.tensor(float("-inf")), "float32", "ff800000"),
        (torch.tensor(1.0, dtype=torch.bfloat16), "bfloat16", "3f80"),
        (torch.tensor(-0.0, dtype=torch.bfloat16), "bfloat16", "8000"),
        (torch.tensor(0.1, dtype=torch.float64), "float64", "3fb999999999999a"),
        (torch.tensor(-0.0, dtype=torch.float64), "float64", "8000000000000000"),
        (0.1, "float64", "3fb999999999999a"),
        (-0.0, "float64", "8000000000000000"),
        (3, "int64", "0000000000000003"),
        (-1, "int64", "ffffffffffffffff"),
    ],
)
def test_bits_of_known_values(value: torch.Tensor | float, dtype: str, bits: str) -> None:
    assert metric_of(value) == Metric(dtype, bits)


@given(st.integers(0, 2**32 - 1))
def test_every_float32_keeps_its_bits(raw: int) -> None:
    """NaN payloads as well."""
    tensor = torch.frombuffer(bytearray(struct.pack("<I", raw)), dtype=torch.float32)
    assert metric_of(tensor) == Metric("float32", f"{raw:08x}")


@given(st.integers(0, 2**16 - 1))
def test_every_bfloat16_keeps_its_bits(raw: int) -> None:
    tensor = torch.frombuffer(bytearray(struct.pack("<H", raw)), dtype=torch.bfloat16)
    assert metric_of(tensor) == Metric("bfloat16", f"{raw:04x}")


@given(st.integers(0, 2**64 - 1))
def test_every_float64_keeps_its_bits(raw: int) -> None:
    tensor = torch.frombuffer(bytearray(struct.pack("<Q", raw)), dtype=torch.float64)
    assert metric_of(tensor) == Metric("float64", f"{raw:016x}")


def test_a_gradient_is_left_alone_and_the_value_is_exact() -> None:
    value = (torch.tensor(2.0, requires_grad=True) * 0.1).sum()
    metric = metric_of(value)
    assert metric.value == value.item()
    assert math.isclose(float(metric.value), 0.2, rel_tol=1e-6)


def test_metrics_come_to_the_host_in_one_copy_a_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[torch.Size] = []
    copy = torch.Tensor.cpu

    def counted(tensor: torch.Tensor) -> torch.Tensor:
        copies.append(tensor.shape)
        return copy(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", counted)
    odd = torch.frombuffer(bytearray(struct.pack("<I", 0x7FA00001)), dtype=torch.float32)  # a NaN with a payload
    tables: dict[str, dict[Any, Any]] = {
        "losses": {"lm loss": odd, "other": torch.tensor([[2.0]])},
        "tokens": {0: torch.tensor(7, dtype=torch.int32)},
        "routers": {("aux", 3): torch.tensor(0.5)},
        "optimizer": {"norm": 0.25, "scale": torch.tensor([1.0]), "nothing": None},
    }
    found = on_host(tables)
    assert sorted(copies) == [(1,), (4,)]
    assert metric_of(found["losses"]["lm loss"]) == Metric("float32", "7fa00001")
    assert float(found["losses"]["other"]) == 2.0
    assert int(found["tokens"][0]) == 7
    assert float(found["routers"]["aux", 3]) == 0.5
    assert found["optimizer"]["norm"] == 0.25
    assert found["optimizer"]["nothing"] is None
    assert {table: list(values) for table, values in found.items()} == {t: list(v) for t, v in tables.items()}


def coefficient(name: str, **arguments: object) -> float:
    """The weight of a router loss in the training loss under these Megatron arguments."""
    args = {"num_experts": None, "moe_z_loss_coeff": None, "moe_aux_loss_coeff": 0.0} | arguments
    return StepMetrics(optimizer=None, args=SimpleNamespace(**args))._coefficient(name)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("load_balancing_loss", "aux_loss"),
        ("seq_load_balancing_loss", "seq_aux_loss"),
        ("global_load_balancing_loss", "global_aux_loss"),
    ],
)
def test_a_router_loss_weighs_what_its_kind_is_given(name: str, kind: str) -> None:
    assert coefficient(name, moe_router_load_balancing_type=kind, moe_aux_loss_coeff=1e-4) == 1e-4
    both = {"moe_router_load_balancing_type": ["none", kind]}
    assert coefficient(name, **both, moe_aux_loss_coeff=[0.5, 0.25]) == 0.25
    assert coefficient(name, **both, moe_aux_loss_coeff=0.125) == 0.125


def test_what_is_logged_and_not_trained_on_weighs_nothing() -> None:
    """With the sequence-wise loss Megatron logs the plain one as well."""
    only = {"moe_router_load_balancing_type": "seq_aux_loss", "moe_aux_loss_coeff": 1e-4}
    assert coefficient("load_balancing_loss", **only) == 0.0
    assert coefficient("something_new", **only) == 0.0
    assert coefficient("z_loss", **only) == 0.0
    assert coefficient("z_loss", **only, moe_z_loss_coeff=1e-3) == 1e-3
