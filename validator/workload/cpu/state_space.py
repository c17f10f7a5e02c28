"""The state-space dual of Mamba-2 in plain PyTorch, where mamba-ssm's CUDA kernels cannot run.

Source of the algorithm: Dao and Gu 2024, "Transformers are SSMs", arXiv 2405.21060, section 6 (block decomposition).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def _segment_decay(log_decay: Tensor) -> Tensor:
    """Decay from step j to step i for i ≥ j, zero above the diagonal.

    ``log_decay``: [..., T], float32. Returns [..., T, T], entry (i, j) = exp(sum of log_decay over j < t ≤ i).
    """
    length = log_decay.shape[-1]
    total = log_decay.cumsum(-1)
    difference = total[..., :, None] - total[..., None, :]
    below = torch.ones(length, length, dtype=torch.bool, device=log_decay.device).tril()
    return torch.exp(difference.masked_fill(~below, float("-inf")))


def chunk_scan(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    chunk_size: int,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    dt_softplus: bool = False,
) -> Tensor:
    """Chunked scan of h_t = exp(dt_t A) h_{t-1} + dt_t B_t x_t, y_t = C_t h_t + D x_t, gated by silu(z).

    Shapes: ``x`` and ``z`` [batch, length, heads, headdim], ``dt`` [batch, length, heads], ``A`` [heads] (negative),
    ``B`` and ``C`` [batch, length, groups, state], ``D`` [heads] or [heads, headdim], ``dt_bias`` [heads]. Everything
    is computed in float32; the result has ``x``'s shape and dtype.
    """
    batch, length, heads, headdim = x.shape
    per_group = heads // B.shape[2]
    step = dt.float() if dt_bias is None else dt.float() + dt_bias.float()
    if dt_softplus:
        step = F.softplus(step)

    chunk = min(chunk_size, length)
    chunks = -(-length // chunk)
    padding = chunks * chunk - length

    def blocks(tensor: Tensor) -> Tensor:
        """[batch, length, heads, ...] -> [batch, heads, chunks, chunk, ...]; padded steps have dt = 0 and change
        nothing.
        """
        padded = F.pad(tensor, [0, 0] * (tensor.dim() - 2) + [0, padding]) if padding else tensor
        return padded.reshape(batch, chunks, chunk, *tensor.shape[2:]).transpose(2, 3).transpose(1, 2)

    values = blocks(x.float() * step[..., None])
    keys = blocks(B.float().repeat_interleave(per_group, dim=2))
    queries = blocks(C.float().repeat_interleave(per_group, dim=2))
    log_decay = blocks(step * A.float())

    # Within a chunk: a masked product of queries and keys, weighted by the decay between them.
    inside = torch.einsum("bhcin,bhcjn->bhcij", queries, keys) * _segment_decay(log_decay)
    y = torch.einsum("bhcij,bhcjp->bhcip", inside, values)

    # Between chunks: each chunk's final state, carried on by the decay over whole chunks.
    total = log_decay.cumsum(-1)
    to_end = torch.exp(total[..., -1:] - total)
    states = torch.einsum("bhcj,bhcjn,bhcjp->bhcpn", to_end, keys, values)
    chunk_decay = torch.exp(total[..., -1])
    carried = torch.zeros_like(states[:, :, 0])
    entering = []
    for index in range(chunks):
        entering.append(carried)
        carried = carried * chunk_decay[:, :, index, None, None] + states[:, :, index]
    y = y + torch.einsum("bhcin,bhcpn,bhci->bhcip", queries, torch.stack(entering, dim=2), torch.exp(total))

    y = y.transpose(1, 2).transpose(2, 3).reshape(batch, chunks * chunk, heads, headdim)[:, :length]
    if D is not None:
        y = y + x.float() * (D.float()[:, None] if D.dim() == 1 else D.float())
    if z is not None:
        y = y * F.silu(z.float())
    return y.to(x.dtype)


def split_conv_scan(
    zxbcdt: Tensor,
    conv1d_weight: Tensor,
    conv1d_bias: Tensor | None,
    dt_bias: Tensor,
    A: Tensor,
    D: Tensor | None,
    chunk_size: int,
    activation: str = "silu",
    headdim: int | None = None,
    ngroups: int = 1,
    norm_before_gate: bool = True,
    seq_idx: Tensor | None = None,
    **unsupported: Any,
) -> Tensor:
    """Mamba-2's inner part between its two projections: split, causal convolution, scan, gate.

    ``zxbcdt``: [batch, length, 2 · inner + 2 · groups · state + heads]; ``conv1d_weight``: [inner + 2 · groups ·
    state, width]. Returns [batch, length, inner] in ``zxbcdt``'s dtype.
    """
    if (
        seq_idx is not None
        or any(value is not None for value in unsupported.values())
        or activation not in ("silu", "swish")
    ):
        raise ValueError("the CPU state-space scan supports neither packed sequences nor a fused norm or projection")
    heads = A.shape[0]
    if headdim is None:
        assert D is not None and D.dim() == 2
        headdim = D.shape[1]
    inner = heads * headdim
    channels, width = conv1d_weight.shape
    state = (channels - inner) // (2 * ngroups)
    z, convolved, dt = torch.split(zxbcdt, [inner, channels, heads], dim=-1)

    # Depthwise causal convolution as a sum of shifted products, in a fixed order.
    padded = F.pad(convolved.float(), (0, 0, width - 1, 0))
    length = convolved.shape[1]
    out = padded[:, :length] * conv1d_weight[:, 0].float()
    for tap in range(1, width):
        out = out + padded[:, tap : tap + length] * conv1d_weight[:, tap].float()
    if conv1d_bias is not None:
        out = out + conv1d_bias.float()
    out = F.silu(out).to(zxbcdt.dtype)

    x, B, C = torch.split(out, [inner, ngroups * state, ngroups * state], dim=-1)
    batch = x.shape[0]
    y = chunk_scan(
        x.reshape(batch, length, heads, headdim),
        dt,
        A,
        B.reshape(batch, length, ngroups, state),
        C.reshape(batch, length, ngroups, state),
        chunk_size,
        D=D,
        z=z.reshape(batch, length, heads, headdim),
        dt_bias=dt_bias,
        dt_softplus=True,
    )
    return y.reshape(batch, length, inner)


class GatedRMSNorm(torch.nn.Module):
    """RMS norm over groups of channels, gated by silu(z) where z is given; statistics in float32."""

    def __init__(
        self,
        hidden_size: int,
        eps: float = 1e-5,
        group_size: int | None = None,
        norm_before_gate: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.eps = eps
        self.group_size = group_size or hidden_size
        self.norm_before_gate = norm_before_gate

    def forward(self, x: Tensor, z: Tensor | None = None) -> Tensor:
        """``x``, ``z``: [..., hidden]; the result has ``x``'s shape and dtype."""
        values = x.float()
        if z is not None and not self.norm_before_gate:
            values = values * F.silu(z.float())
        grouped = values.unflatten(-1, (-1, self.group_size))
        normed = grouped * torch.rsqrt(grouped.square().mean(-1, keepdim=True) + self.eps)
        values = normed.flatten(-2) * self.weight.float()
        if z is not None and self.norm_before_gate:
            values = values * F.silu(z.float())
        return values.to(x.dtype)
