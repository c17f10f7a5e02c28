# ruff: noqa: N806 - A, B, C, D: as in the source
"""The chunked scan against the sequential recurrence, the convolution against PyTorch's, the gated norm against its
formula; all references in float64.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from tests.workload.sequential_scan import sequential_scan
from validator.workload.cpu.state_space import GatedRMSNorm, chunk_scan, split_conv_scan

SHAPES = st.fixed_dictionaries(
    {
        "batch": st.integers(1, 2),
        "length": st.integers(1, 37),
        "groups": st.integers(1, 3),
        "per_group": st.integers(1, 3),
        "headdim": st.integers(1, 5),
        "state": st.integers(1, 6),
    }
)


def inputs(
    seed: int, batch: int, length: int, groups: int, per_group: int, headdim: int, state: int, d_per_channel: bool
) -> dict[str, Tensor]:
    """Random inputs of a scan, float32: steps dt in (0, 1), decays A in (-2, 0)."""
    draw = torch.Generator().manual_seed(seed)
    heads = groups * per_group

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draw)

    return {
        "x": normal(batch, length, heads, headdim),
        "dt": torch.rand(batch, length, heads, generator=draw),
        "A": -2 * torch.rand(heads, generator=draw),
        "B": normal(batch, length, groups, state),
        "C": normal(batch, length, groups, state),
        "D": normal(heads, headdim) if d_per_channel else normal(heads),
        "z": normal(batch, length, heads, headdim),
        "dt_bias": normal(heads),
    }


def double(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.double() for name, tensor in tensors.items()}


def assert_close(found: Tensor, expected: Tensor) -> None:
    """Equal within float32's rounding, as seen from the largest entry."""
    expected = expected.detach()
    scale = max(1.0, float(expected.abs().max()))
    assert float((found.detach().double() - expected).abs().max()) <= 2e-5 * scale


def test_a_halving_state_driven_by_ones_adds_up_as_computed_by_hand() -> None:
    ones = torch.ones(1, 4, 1, 1)
    halving = torch.tensor([-0.6931471805599453])
    y = chunk_scan(ones, torch.ones(1, 4, 1), halving, ones, ones, chunk_size=2)
    torch.testing.assert_close(y.flatten(), torch.tensor([1.0, 1.5, 1.75, 1.875]), rtol=0, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.integers(1, 40), st.integers(0, 2**31), st.booleans(), st.booleans())
def test_every_chunk_size_gives_the_recurrence(
    shapes: dict[str, int], chunk: int, seed: int, gated: bool, d_per_channel: bool
) -> None:
    tensors = inputs(seed, **shapes, d_per_channel=d_per_channel)
    if not gated:
        del tensors["z"], tensors["D"], tensors["dt_bias"]
    y = chunk_scan(**tensors, chunk_size=chunk, dt_softplus=gated)
    assert y.dtype == torch.float32
    assert_close(y, sequential_scan(**double(tensors), dt_softplus=gated))


@settings(max_examples=20, deadline=None)
@given(SHAPES, st.integers(1, 20), st.integers(0, 2**31))
def test_gradients_are_those_of_the_recurrence(shapes: dict[str, int], chunk: int, seed: int) -> None:
    tensors = {name: tensor.requires_grad_() for name, tensor in inputs(seed, **shapes, d_per_channel=False).items()}
    reference = {name: tensor.detach().double().requires_grad_() for name, tensor in tensors.items()}
    expected = sequential_scan(**reference, dt_softplus=True)
    weights = torch.randn(expected.shape, generator=torch.Generator().manual_seed(seed + 1))
    (chunk_scan(**tensors, chunk_size=chunk, dt_softplus=True) * weights).sum().backward()
    (expected * weights.double()).sum().backward()
    for name, tensor in tensors.items():
        assert tensor.grad is not None
        assert reference[name].grad is not None
        assert_close(tensor.grad, reference[name].grad)


def test_the_recurrence_itself_passes_finite_differences() -> None:
    tensors = double(inputs(3, 1, 4, 2, 1, 2, 2, d_per_channel=True))
    names = list(tensors)

    def scan(*values: Tensor) -> Tensor:
        return sequential_scan(**dict(zip(names, values, strict=True)), dt_softplus=True)

    assert torch.autograd.gradcheck(scan, tuple(tensor.requires_grad_() for tensor in tensors.values()))


def test_the_past_does_not_see_the_future() -> None:
    tensors = inputs(5, 1, 20, 1, 2, 3, 4, d_per_channel=False)
    before = chunk_scan(**tensors, chunk_size=8)
    tensors["x"][:, 13] += 1
    after = chunk_scan(**tensors, chunk_size=8)
    assert torch.equal(before[:, :13], after[:, :13])
    assert not torch.equal(before[:, 13:], after[:, 13:])


def test_a_state_that_decays_at_once_stays_finite_with_its_gradients() -> None:
    tensors = {name: t.requires_grad_() for name, t in inputs(7, 1, 64, 1, 2, 2, 2, d_per_channel=False).items()}
    with torch.no_grad():
        tensors["A"].fill_(-1e4)
    y = chunk_scan(**tensors, chunk_size=32, dt_softplus=True)
    y.sum().backward()
    assert torch.isfinite(y).all()
    assert all(torch.isfinite(tensor.grad).all() for tensor in tensors.values() if tensor.grad is not None)


def mixer_inputs(seed: int, length: int, groups: int, width: int, bias: bool) -> dict[str, Tensor | None]:
    """Inputs of the mixer's inner part: 4 heads of 3 channels, state 5."""
    draw = torch.Generator().manual_seed(seed)
    heads, headdim, state = 4, 3, 5
    channels = heads * headdim + 2 * groups * state
    return {
        "zxbcdt": torch.randn(2, length, heads * headdim + channels + heads, generator=draw),
        "conv1d_weight": torch.randn(channels, width, generator=draw),
        "conv1d_bias": torch.randn(channels, generator=draw) if bias else None,
        "dt_bias": torch.randn(heads, generator=draw),
        "A": -torch.rand(heads, generator=draw),
        "D": torch.randn(heads, generator=draw),
    }


def convolve_and_scan(tensors: dict[str, Tensor | None], groups: int) -> Tensor:
    """The same with PyTorch's convolution and the sequential recurrence, in float64."""
    zxbcdt, weight, bias, dt_bias, A, D = (None if t is None else t.double() for t in tensors.values())
    assert zxbcdt is not None and weight is not None and dt_bias is not None and A is not None
    batch, length, _ = zxbcdt.shape
    channels, width = weight.shape
    z, convolved, dt = zxbcdt.split([12, channels, 4], dim=-1)
    padded = functional.pad(convolved.transpose(1, 2), (width - 1, 0))
    out = functional.silu(functional.conv1d(padded, weight[:, None], bias, groups=channels)).transpose(1, 2)
    x, B, C = out.split([12, groups * 5, groups * 5], dim=-1)
    y = sequential_scan(
        x.reshape(batch, length, 4, 3),
        dt,
        A,
        B.reshape(batch, length, groups, 5),
        C.reshape(batch, length, groups, 5),
        D,
        z.reshape(batch, length, 4, 3),
        dt_bias,
        dt_softplus=True,
    )
    return y.reshape(batch, length, 12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.integers(1, 9), st.sampled_from([1, 2, 4]), st.integers(1, 4), st.booleans())
def test_split_convolution_and_scan_are_pytorchs_convolution_and_the_recurrence(
    length: int, chunk: int, groups: int, width: int, bias: bool
) -> None:
    tensors = mixer_inputs(length, length, groups, width, bias)
    y = split_conv_scan(**tensors, chunk_size=chunk, headdim=3, ngroups=groups)
    assert_close(y, convolve_and_scan(tensors, groups))


def test_bfloat16_in_is_bfloat16_out_and_close() -> None:
    tensors = mixer_inputs(1, 16, 2, 4, bias=True)
    half = {name: None if t is None else t.bfloat16() for name, t in tensors.items()}
    y = split_conv_scan(**half, chunk_size=4, headdim=3, ngroups=2)
    expected = convolve_and_scan(half, 2)
    assert y.dtype == torch.bfloat16
    # Rounded twice to 8 bits of precision: after the convolution and at the end.
    assert float((y.double() - expected).abs().max()) <= 0.03 * float(expected.abs().max())


@pytest.mark.parametrize(
    "extra", [{"seq_idx": torch.zeros(2, 16)}, {"activation": "gelu"}, {"rmsnorm_weight": torch.ones(12)}]
)
def test_what_the_scan_does_not_do_is_refused(extra: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="supports neither packed sequences nor a fused norm or projection"):
        split_conv_scan(**mixer_inputs(1, 16, 2, 4, bias=True), chunk_size=4, headdim=3, ngroups=2, **extra)


@pytest.mark.parametrize("group_size", [None, 4, 6])
@pytest.mark.parametrize("norm_before_gate", [True, False])
def test_the_gated_norm_follows_its_formula(group_size: int | None, norm_before_gate: bool) -> None:
    draw = torch.Generator().manual_seed(11)
    x, z = torch.randn(2, 3, 12, generator=draw), torch.randn(2, 3, 12, generator=draw)
    norm = GatedRMSNorm(12, eps=1e-3, group_size=group_size, norm_before_gate=norm_before_gate)
    with torch.no_grad():
        norm.weight.copy_(torch.randn(12, generator=draw))

    size = group_size or 12
    gate = z.double() * torch.sigmoid(z.double())
    values = x.double() if norm_before_gate else x.double() * gate
    expected = torch.empty_like(values)
    for start in range(0, 12, size):
        part = values[..., start : start + size]
        mean_square = (part**2).sum(-1, keepdim=True) / size
        expected[..., start : start + size] = part / (mean_square + 1e-3).sqrt()
    expected = expected * norm.weight.detach().double()
    if norm_before_gate:
        expected = expected * gate
    assert_close(norm(x, z), expected)
    assert norm(x.bfloat16(), z.bfloat16()).dtype == torch.bfloat16


def test_without_a_gate_the_order_does_not_matter() -> None:
    x = torch.randn(5, 8, generator=torch.Generator().manual_seed(2))
    assert torch.equal(GatedRMSNorm(8)(x), GatedRMSNorm(8, norm_before_gate=False)(x))
