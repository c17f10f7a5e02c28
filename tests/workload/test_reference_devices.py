"""The reference layers run on any device: on PyTorch's meta device every tensor of their own would stand out."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from validator.workload.cpu.state_space import GatedRMSNorm, chunk_scan
from validator.workload.norm import RMSNorm


def meta(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta", dtype=torch.bfloat16)


def test_the_scan_makes_nothing_on_another_device() -> None:
    result = chunk_scan(
        meta(2, 40, 4, 8), meta(2, 40, 4), meta(4), meta(2, 40, 2, 16), meta(2, 40, 2, 16), 16, D=meta(4),
        z=meta(2, 40, 4, 8), dt_bias=meta(4), dt_softplus=True,
    )  # fmt: skip
    assert (result.device.type, result.shape) == ("meta", (2, 40, 4, 8))


def test_the_gated_norm_too() -> None:
    norm = GatedRMSNorm(32, group_size=8, norm_before_gate=False, device="meta", dtype=torch.bfloat16)
    assert norm(meta(2, 5, 32), meta(2, 5, 32)).device.type == "meta"


def test_the_norm_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "meta")
    norm = RMSNorm(SimpleNamespace(params_dtype=torch.bfloat16, sequence_parallel=False), 32)
    assert norm(meta(2, 5, 32)).device.type == "meta"
