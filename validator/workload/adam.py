"""AdamW in the style of the fused optimizers: the step count lives in the parameter group.

Megatron's distributed optimizer restores checkpoints only into optimizers of that style (Transformer Engine's, Apex's).
"""

from __future__ import annotations

from typing import Any

import numpy
import torch
from torch import Tensor


def square_root_(tensor: Tensor) -> Tensor:
    """The square root of a float32 tensor in its place, on a CPU correctly rounded as IEEE 754 has it; returns the
    tensor.

    PyTorch takes Intel's vector library for it on a CPU. That one is right in all but the last bit, and in the last bit
    is not the same on Intel's and AMD's processors, whatever ``MKL_CBWR`` says.
    """
    if tensor.device.type != "cpu":
        return tensor.sqrt_()
    numpy.sqrt(tensor.numpy(), out=tensor.numpy())
    return tensor


class Adam(torch.optim.Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019, arXiv 1711.05101); moments ``exp_avg``,
    ``exp_avg_sq`` in float32.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        **_: Any,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update of every parameter that has a gradient."""
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            first, second = group["betas"]
            correction1 = 1 - first ** group["step"]
            correction2 = 1 - second ** group["step"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["exp_avg"] = torch.zeros_like(parameter)
                    state["exp_avg_sq"] = torch.zeros_like(parameter)
                gradient = parameter.grad
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                state["exp_avg"].mul_(first).add_(gradient, alpha=1 - first)
                state["exp_avg_sq"].mul_(second).addcmul_(gradient, gradient, value=1 - second)
                denominator = square_root_(state["exp_avg_sq"] / correction2).add_(group["eps"])
                parameter.addcdiv_(state["exp_avg"], denominator, value=-group["lr"] / correction1)
