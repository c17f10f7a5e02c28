"""RMS norm for the layer spec without Transformer Engine."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class RMSNorm(torch.nn.Module):
    """RMS norm with statistics in float32, on any device, with sequence parallelism.

    Megatron's own wrapper refuses sequence parallelism; the weight only has to be marked, so that its gradient is
    summed over the tensor-parallel ranks.
    """

    def __init__(self, config: Any, hidden_size: int, eps: float = 1e-5, **_: Any) -> None:
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(
            torch.ones(hidden_size, dtype=config.params_dtype, device=torch.cuda.current_device())
        )
        self.weight.sequence_parallel = config.sequence_parallel  # type: ignore[attr-defined]

    def forward(self, x: Tensor) -> Tensor:
        """``x``: [..., hidden_size]; the result has ``x``'s shape and dtype."""
        values = x.float()
        values = values * torch.rsqrt(values.square().mean(-1, keepdim=True) + self.eps)
        return (values * self.weight.float()).to(x.dtype)
