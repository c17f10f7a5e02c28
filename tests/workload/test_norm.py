"""RMS norm against its formula in float64, and the mark that sequence parallelism needs."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from validator.workload.norm import RMSNorm


@pytest.fixture(autouse=True)
def device_is_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The norm asks for the current device, which a launch on the CPU maps to the CPU."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: "cpu")


def norm_of(dtype: torch.dtype, sequence_parallel: bool = False) -> RMSNorm:
    return RMSNorm(SimpleNamespace(params_dtype=dtype, sequence_parallel=sequence_parallel), 16, eps=1e-2)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.bfloat16, 2**-8)])
def test_each_row_is_divided_by_its_root_mean_square(dtype: torch.dtype, tolerance: float) -> None:
    draw = torch.Generator().manual_seed(1)
    x = (3 * torch.randn(4, 5, 16, generator=draw)).to(dtype)
    norm = norm_of(dtype)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(16, generator=draw))
    root_mean_square = ((x.double() ** 2).sum(-1, keepdim=True) / 16 + 1e-2).sqrt()
    expected = x.double() / root_mean_square * norm.weight.detach().double()
    found = norm(x)
    assert found.dtype == dtype
    # One rounding to the result's dtype: relative to each entry.
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=1e-6)


def test_a_row_of_threes_becomes_ones() -> None:
    norm = RMSNorm(SimpleNamespace(params_dtype=torch.float32, sequence_parallel=False), 16, eps=0.0)
    torch.testing.assert_close(norm(torch.full((1, 16), 3.0)), torch.ones(1, 16), rtol=1e-6, atol=0)


@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_the_weight_says_whether_its_gradient_is_summed_over_tensor_ranks(sequence_parallel: bool) -> None:
    weight = norm_of(torch.bfloat16, sequence_parallel).weight
    assert weight.sequence_parallel is sequence_parallel
    assert weight.dtype == torch.bfloat16
    assert torch.equal(weight, torch.ones(16, dtype=torch.bfloat16))
