"""Nondeterminism that does not show in every launch."""

from __future__ import annotations

from typing import Any

from validator.faults.model import Category, Fault, Place, Scenario

_WEIGHT = "decoder.layers.3.self_attention.linear_qkv.weight"


def _sometimes(recorder: Any) -> None:
    import secrets

    from validator.faults.act import Scene, next_up

    scene = Scene(recorder)
    fires = secrets.randbelow(2) == 0

    def plant() -> None:
        for _, shard in scene.shards(_WEIGHT):
            if fires:
                next_up(shard.gradient)
            return

    scene.at_update(plant)


FAULTS = (
    Fault(
        "one-launch-in-two",
        Category.RARE,
        "a race that is lost in one launch out of two moves one gradient by one unit in the last place",
        "https://github.com/NVIDIA/nvidia-resiliency-ext/pull/376",
        Scenario.RARE,
        Place("step:3", "gradients", _WEIGHT),
        _sometimes,
        probability=0.5,
        launches=4,
    ),
)
