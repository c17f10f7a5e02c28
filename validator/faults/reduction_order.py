"""The same addends, summed in another order."""

from __future__ import annotations

import itertools
import time
from typing import Any

from validator.faults.model import ROUTER_LOSS, Category, Fault, Place, Scenario

_ATOMICS = "https://github.com/state-spaces/mamba/pull/827"
_ORDER = "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html"
_FIRST_GRADIENT = Place("step:3", "gradients", "output_layer.weight")
_SCAN = "decoder.layers.0.mixer"
_ATTENTION = "decoder.layers.3.self_attention.core_attention"


def _by_time(recorder: Any) -> None:
    """Split every reduced gradient into three addends and sum them in an order taken from the clock.

    This is what atomic additions do in a backward pass that is not deterministic: the addends are right, their order
    is not fixed, and the sum's last bits follow the order.
    """
    from validator.workload import megatron_internals

    orders = list(itertools.permutations(range(3)))

    def reorder() -> None:
        for _, shard in recorder.state.shards():
            gradient = shard.gradient
            first = gradient * 0.3
            second = gradient * 0.45
            addends = (first, second, gradient - first - second)
            order = orders[time.perf_counter_ns() // 100 % len(orders)]
            gradient.copy_(addends[order[0]] + addends[order[1]] + addends[order[2]])

    megatron_internals.observe_training(megatron_internals.Hooks(before_update=reorder))


def _gradients(change: Any, pattern: str = "*") -> Any:
    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        scene = Scene(recorder)

        def change_all() -> None:
            for name, shard in scene.shards(pattern):
                before = shard.gradient.clone()
                change(shard.gradient)
                if not before.equal(shard.gradient):
                    scene.touched(group="gradients", leaf=name)

        scene.at_update(change_all)

    return install


def _bucket_order(gradient: Any) -> None:
    from validator.faults.act import other_order

    gradient.copy_(other_order(gradient))


def _accumulated_in_bf16(recorder: Any) -> None:
    from validator.faults.act import Scene, through_bf16
    from validator.workload import megatron_internals

    scene = Scene(recorder)

    def within(phase: str, function: Any) -> Any:
        if phase != "backward":
            return function

        def backward(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if scene.acts:
                for _, parameter in scene.state.named_parameters():
                    through_bf16(parameter.main_grad)
            return result

        return backward

    megatron_internals.wrap_phases(within)


def _chunk_size(recorder: Any) -> None:
    from validator.faults.act import Scene

    scene = Scene(recorder)

    def smaller(forward: Any, *args: Any, **kwargs: Any) -> Any:
        mixer = scene.module(_SCAN)
        size, mixer.chunk_size = mixer.chunk_size, 16
        try:
            return forward(*args, **kwargs)
        finally:
            mixer.chunk_size = size

    scene.forward_of(_SCAN, smaller)


def _attention_in_float32(recorder: Any) -> None:
    from validator.faults.act import Scene

    def wider(forward: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        return forward(query.float(), key.float(), value.float(), *args, **kwargs).to(query.dtype)

    Scene(recorder).forward_of(_ATTENTION, wider)


def _other_product(pattern: str, weigh: Any) -> Any:
    """A linear module's product as the sum of two halves of its inner dimension."""

    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        scene = Scene(recorder)

        def halves(forward: Any, given: Any, *args: Any, **kwargs: Any) -> Any:
            output, bias = forward(given, *args, **kwargs)
            if not weigh():
                return output, bias
            weight = scene.module(pattern).weight
            middle = weight.shape[1] // 2
            first = given[..., :middle] @ weight[:, :middle].t()
            return first + given[..., middle:] @ weight[:, middle:].t(), bias

        scene.forward_of(pattern, halves)

    return install


def _clock_says_so() -> bool:
    return time.perf_counter_ns() // 100 % 2 == 0


FAULTS = (
    Fault(
        "reduction-order-by-time",
        Category.REDUCTION_ORDER,
        "three addends of every gradient are summed in an order taken from the clock, as atomic additions are",
        _ATOMICS,
        Scenario.REPEAT,
        Place("step:1", "gradients", "*"),
        _by_time,
        quick=True,
    ),
    Fault(
        "gradient-order-of-one-tensor",
        Category.REDUCTION_ORDER,
        "one gradient's addends are summed in another order in step 3",
        _ATOMICS,
        Scenario.RUN,
        Place("step:3", "gradients", "decoder.layers.3.self_attention.linear_qkv.weight"),
        _gradients(_bucket_order, "decoder.layers.3.self_attention.linear_qkv.weight"),
        quick=True,
    ),
    Fault(
        "gradient-bucket-order",
        Category.REDUCTION_ORDER,
        "the ranks' gradients are summed in another order in step 3",
        _ORDER,
        Scenario.RUN,
        Place("step:3", "gradients", "*"),
        _gradients(_bucket_order),
    ),
    Fault(
        "gradient-accumulated-in-bf16",
        Category.REDUCTION_ORDER,
        "the gradients of step 3 are accumulated over micro-batches in bfloat16",
        "https://github.com/TensorAuto/OpenTau/issues/184",
        Scenario.RUN,
        _FIRST_GRADIENT,
        _accumulated_in_bf16,
    ),
    Fault(
        "scan-chunk-size",
        Category.REDUCTION_ORDER,
        "one state-space scan of step 3 works in chunks of another size",
        _ATOMICS,
        Scenario.RUN,
        Place("step:3", "gradients", f"{_SCAN}.in_proj.weight"),
        _chunk_size,
        module=_SCAN,
    ),
    Fault(
        "attention-accumulates-wider",
        Category.REDUCTION_ORDER,
        "one attention of step 3 computes in float32 and rounds its result once",
        "https://github.com/Dao-AILab/flash-attention/issues/414",
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _attention_in_float32,
        module=_ATTENTION,
    ),
    Fault(
        "product-in-halves",
        Category.REDUCTION_ORDER,
        "one matrix product of step 3 is the sum of two halves (split-K)",
        _ORDER,
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _other_product("decoder.layers.3.self_attention.linear_proj", lambda: True),
        module="decoder.layers.3.self_attention.linear_proj",
    ),
    Fault(
        "kernel-picked-by-timing",
        Category.ENVIRONMENT,
        "one matrix product of step 3 is computed by whichever of two kernels the clock prefers, for every micro-batch",
        "https://github.com/state-spaces/mamba/pull/827",
        Scenario.REPEAT,
        Place("step:3", "metrics", ROUTER_LOSS),
        _other_product("decoder.layers.3.self_attention.linear_proj", _clock_says_so),
        module="decoder.layers.3.self_attention.linear_proj",
    ),
)
