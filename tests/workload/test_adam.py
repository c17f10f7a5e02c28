"""Our Adam against PyTorch's AdamW, and what Megatron's distributed optimizer relies on."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from validator.workload.adam import Adam, square_root_

SETTINGS = {"lr": 3e-3, "betas": (0.9, 0.95), "eps": 1e-8, "weight_decay": 0.1}


def parameters() -> list[torch.nn.Parameter]:
    draw = torch.Generator().manual_seed(4)
    return [torch.nn.Parameter(torch.randn(shape, generator=draw)) for shape in ((7,), (3, 5), ())]


def gradients(step: int) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(100 + step)
    return [10.0 ** (step - 3) * torch.randn(shape, generator=draw) for shape in ((7,), (3, 5), ())]


@given(st.lists(st.floats(0, 2.0**127, width=32), min_size=1, max_size=40))
def test_the_square_root_is_the_nearest_number(values: list[float]) -> None:
    """So that it is the same on every processor. A root in float64, rounded once more, is the nearest in float32."""
    exact = np.sqrt(np.array(values, np.float64)).astype(np.float32)
    tensor = torch.tensor(values, dtype=torch.float32)
    assert square_root_(tensor) is tensor
    assert tensor.numpy().tobytes() == exact.tobytes()


def test_the_update_takes_that_root() -> None:
    """PyTorch's own is off by one unit in the last place for one value in six, by the code for every processor."""
    draw = np.random.default_rng(5)
    gradient = torch.from_numpy(draw.standard_normal(10_000).astype(np.float32))
    parameter = torch.nn.Parameter(torch.zeros(10_000))
    parameter.grad = gradient
    Adam([parameter], lr=1.0, betas=(0.0, 0.0), eps=0.0).step()
    root = np.sqrt((gradient * gradient).numpy())
    assert parameter.detach().numpy().tobytes() == (-gradient.numpy() / root).tobytes()


def test_five_steps_equal_adamw_with_their_moments() -> None:
    ours, theirs = parameters(), parameters()
    adam, adamw = Adam(ours, **SETTINGS), torch.optim.AdamW(theirs, foreach=False, **SETTINGS)
    for step in range(5):
        for mine, other, gradient in zip(ours, theirs, gradients(step), strict=True):
            mine.grad, other.grad = gradient.clone(), gradient.clone()
        adam.step()
        adamw.step()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-6)
        for moment in ("exp_avg", "exp_avg_sq"):
            torch.testing.assert_close(adam.state[mine][moment], adamw.state[other][moment], rtol=1e-6, atol=1e-6)


def test_the_first_step_moves_every_parameter_by_the_learning_rate() -> None:
    (parameter,) = [torch.nn.Parameter(torch.tensor([1.0, -2.0]))]
    parameter.grad = torch.tensor([5.0, -0.25])
    Adam([parameter], lr=0.125).step()
    torch.testing.assert_close(parameter.detach(), torch.tensor([0.875, -1.875]), rtol=0, atol=1e-6)


def test_weight_decay_is_decoupled_from_the_gradient() -> None:
    parameter = torch.nn.Parameter(torch.tensor([4.0]))
    parameter.grad = torch.zeros(1)
    Adam([parameter], lr=0.5, weight_decay=0.25).step()
    assert parameter.item() == 4.0 * (1 - 0.5 * 0.25)


def test_the_step_count_is_the_groups_as_in_the_fused_optimizers() -> None:
    always, late = (torch.nn.Parameter(torch.tensor([1.0])) for _ in range(2))
    adam = Adam([always, late], lr=0.1)
    always.grad = torch.ones(1)
    adam.step()
    assert late not in adam.state
    assert late.item() == 1.0
    late.grad = torch.ones(1)
    adam.step()
    assert adam.param_groups[0]["step"] == 2
    assert set(adam.state[late]) == {"exp_avg", "exp_avg_sq"}
    # The late parameter's first gradient is corrected as if its step were the group's second.
    expected = 1.0 - 0.1 / (1 - 0.9**2) * 0.1 / ((0.001 / (1 - 0.999**2)) ** 0.5 + 1e-8)
    torch.testing.assert_close(late.detach(), torch.tensor([expected]), rtol=0, atol=1e-6)


def test_a_restored_step_count_is_continued() -> None:
    parameter = torch.nn.Parameter(torch.ones(1))
    adam = Adam([parameter], lr=0.1)
    adam.param_groups[0]["step"] = 7
    parameter.grad = torch.ones(1)
    adam.step()
    assert adam.param_groups[0]["step"] == 8


def test_on_a_device_the_root_is_the_devices_own() -> None:
    """A meta tensor has no memory that NumPy could read, as one on a GPU has none."""
    tensor = torch.ones(3, device="meta")
    assert square_root_(tensor) is tensor
