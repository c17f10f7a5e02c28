# ruff: noqa: N803 - A, B, C, D: as in the source
"""The state-space recurrence as the paper writes it, one step after the other, in float64 (Dao and Gu 2024, arXiv
2405.21060, equation 2).
"""

from __future__ import annotations

import torch
from torch import Tensor


def sequential_scan(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    dt_softplus: bool = False,
) -> Tensor:
    """h_t = exp(dt_t A) h_{t-1} + dt_t x_t B_tᵀ and y_t = h_t C_t + D x_t, times silu(z); shapes as ``chunk_scan``."""
    batch, length, heads, headdim = x.shape
    groups, state = B.shape[2:]
    h = x.new_zeros(batch, heads, headdim, state)
    outputs = []
    for t in range(length):
        step = dt[:, t] if dt_bias is None else dt[:, t] + dt_bias
        if dt_softplus:
            step = torch.log1p(torch.exp(step))
        y = []
        states = []
        for head in range(heads):
            group = head // (heads // groups)
            decay = torch.exp(step[:, head] * A[head])[:, None, None]
            drive = step[:, head, None, None] * x[:, t, head, :, None] * B[:, t, group, None, :]
            states.append(decay * h[:, head] + drive)
            y.append((states[-1] * C[:, t, group, None, :]).sum(-1))
        h = torch.stack(states, dim=1)
        outputs.append(torch.stack(y, dim=1))
    result = torch.stack(outputs, dim=1)
    if D is not None:
        result = result + x * (D[:, None] if D.dim() == 1 else D)
    if z is not None:
        result = result * z / (1 + torch.exp(-z))
    return result
