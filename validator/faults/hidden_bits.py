"""Bits that a comparison of printed values does not see."""

from __future__ import annotations

from typing import Any

from validator.faults.model import Category, Fault, Place, Scenario

_BITS = "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html"
_WEIGHT = "decoder.layers.3.self_attention.linear_qkv.weight"


def _negative_zero(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    scene = Scene(recorder)

    def plant() -> None:
        for name, shard in scene.shards():
            flat = shard.state["exp_avg"].view(-1)
            zeros = (flat.view(torch.int32) == 0).nonzero()
            if len(zeros):
                flat[zeros[0]] = -0.0
                scene.touched(group="optimizer", leaf=f"{name}/exp_avg")
                return

    scene.after_step(plant)


def _nan_payload(recorder: Any) -> None:
    """A NaN in one main parameter between two updates, when nothing reads it; another payload in every launch."""
    import secrets

    import torch

    from validator.faults.act import Scene
    from validator.faults.model import STEP

    scene = Scene(recorder)
    held: list[Any] = []

    def plant() -> None:
        for _, shard in scene.shards(_WEIGHT):
            bits = shard.main.view(-1).view(torch.int32)
            held.append(bits[0].clone())
            bits[0] = 0x7FC00000 | secrets.randbits(16)

    def put_back() -> None:
        for _, shard in scene.shards(_WEIGHT):
            shard.main.view(-1).view(torch.int32)[0] = held.pop(0)

    scene.after_step(plant)
    scene.at_update(put_back, step=STEP + 1)


def _first_tensor(change: Any, kind: str, pattern: str) -> Any:
    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        scene = Scene(recorder)

        def plant() -> None:
            for _, shard in scene.shards(pattern):
                change(shard.main if kind == "main" else shard.state[kind])
                return

        scene.after_step(plant)

    return install


def _one_ulp(tensor: Any) -> None:
    from validator.faults.act import next_up

    next_up(tensor, tensor.numel() // 2)


def _rows_swapped(tensor: Any) -> None:
    flat = tensor.view(-1)
    rows = flat[:128].view(2, 64)
    rows.copy_(rows.flip(0).clone())


FAULTS = (
    Fault(
        "negative-zero",
        Category.HIDDEN_BITS,
        "one zero of one moment is -0.0 after step 3, and equal to what it should be",
        _BITS,
        Scenario.RUN,
        Place("step:3", "optimizer", "*/exp_avg"),
        _negative_zero,
    ),
    Fault(
        "nan-payload",
        Category.HIDDEN_BITS,
        "a NaN that nothing reads has another payload in every launch, after step 3",
        _BITS,
        Scenario.REPEAT,
        Place("step:3", "main_parameters", _WEIGHT),
        _nan_payload,
    ),
    Fault(
        "one-ulp-of-a-moment",
        Category.HIDDEN_BITS,
        "one element of one second moment is one unit in the last place larger after step 3",
        _BITS,
        Scenario.RUN,
        Place("step:3", "optimizer", f"{_WEIGHT}/exp_avg_sq"),
        _first_tensor(_one_ulp, "exp_avg_sq", _WEIGHT),
        quick=True,
    ),
    Fault(
        "one-ulp-of-a-main-parameter",
        Category.HIDDEN_BITS,
        "one element of one main parameter is one unit in the last place off after step 3; its bfloat16 is the same",
        _BITS,
        Scenario.RUN,
        Place("step:3", "main_parameters", _WEIGHT),
        _first_tensor(_one_ulp, "main", _WEIGHT),
    ),
    Fault(
        "rows-swapped",
        Category.HIDDEN_BITS,
        "two rows of one moment have changed places after step 3: every sum over them is the same",
        _BITS,
        Scenario.RUN,
        Place("step:3", "optimizer", f"{_WEIGHT}/exp_avg"),
        _first_tensor(_rows_swapped, "exp_avg", _WEIGHT),
    ),
)
