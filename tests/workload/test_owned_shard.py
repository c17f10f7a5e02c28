"""The gradient of what a rank owns: a part of the parameter's gradient, wherever that lies now."""

from __future__ import annotations

import torch

from validator.workload.megatron_internals import OwnedShard


def shard(gradient: torch.Tensor) -> OwnedShard:
    parameter = torch.nn.Parameter(torch.zeros(2, 4))
    parameter.main_grad = gradient
    return OwnedShard(parameter, 2, 6, torch.zeros(4), torch.zeros(4), None)


def test_it_is_a_view_of_the_part_that_is_owned() -> None:
    whole = torch.arange(8.0).view(2, 4)
    owned = shard(whole)
    assert owned.gradient.tolist() == [2.0, 3.0, 4.0, 5.0]
    owned.gradient.mul_(10)
    assert whole.tolist() == [[0.0, 1.0, 20.0, 30.0], [40.0, 50.0, 6.0, 7.0]]
    assert owned.gradient is owned.gradient  # not made anew in every step


def test_it_follows_a_gradient_that_is_another_one_now() -> None:
    owned = shard(torch.zeros(2, 4))
    assert owned.gradient.sum() == 0
    owned.parameter.main_grad = torch.ones(2, 4)
    assert owned.gradient.sum() == 4
    owned.parameter.main_grad.data = torch.full((2, 4), 2.0)  # the same tensor, with other memory
    assert owned.gradient.sum() == 8
