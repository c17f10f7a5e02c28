"""Tokens that go to another expert, in another order, or with another weight."""

from __future__ import annotations

import itertools
from typing import Any

from validator.faults.model import ROUTER_LOSS, Category, Fault, Place, Scenario

_TIES = "https://github.com/NVIDIA-NeMo/Automodel/pull/3156"
_TOP_K = "https://github.com/vllm-project/vllm/pull/55514"
_SLOTS = "https://github.com/sgl-project/sglang/pull/33511"
_ROUTER = "decoder.layers.1.mlp.router"
_EXPERT = "decoder.layers.1.mlp.experts.local_experts.0"


def _ties_by_time(recorder: Any) -> None:
    """Logits so coarse that experts tie, and ties broken by noise far below their distance."""
    import secrets

    import torch

    from validator.faults.act import Scene

    scene = Scene(recorder)

    def route(forward: Any, *args: Any, **kwargs: Any) -> Any:
        router = scene.module(_ROUTER)
        gating = router.gating

        def coarse(given: Any) -> Any:
            logits = gating(given)
            steps = (logits * 4).round() / 4
            clock = torch.Generator(device=logits.device).manual_seed(secrets.randbits(63))
            noise = torch.rand(logits.shape, generator=clock, device=logits.device)
            return logits + (steps - logits).detach() + 1e-6 * noise

        router.gating = coarse
        try:
            return forward(*args, **kwargs)
        finally:
            router.gating = gating

    scene.forward_of(_ROUTER, route)


def _weights(change: Any) -> Any:
    """``change(probabilities, routing map)`` over what one router of the fault's step gives."""

    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        def route(forward: Any, *args: Any, **kwargs: Any) -> Any:
            return change(*forward(*args, **kwargs))

        Scene(recorder).forward_of(_ROUTER, route)

    return install


def _scaled_first(probabilities: Any, chosen: Any) -> Any:
    return probabilities / 2.5 * 2.5, chosen


def _in_bf16(probabilities: Any, chosen: Any) -> Any:
    return probabilities.bfloat16().to(probabilities.dtype), chosen


def _next_best(probabilities: Any, chosen: Any) -> Any:
    """The first token's weights go to the experts beside the chosen ones: an index that is off by one."""
    rolled_probabilities, rolled_chosen = probabilities.clone(), chosen.clone()
    rolled_probabilities[0], rolled_chosen[0] = probabilities[0].roll(1), chosen[0].roll(1)
    return rolled_probabilities, rolled_chosen


def _slot_order(recorder: Any) -> None:
    """Every expert's tokens come last first: equal outputs, and another order of the sum over tokens in gradients."""
    import torch

    from validator.faults.act import Scene

    def reversed_tokens(forward: Any, tokens: Any, counts: Any, probabilities: Any) -> Any:
        starts = [0, *counts.cumsum(0).tolist()]
        order = torch.cat([torch.arange(start, end).flip(0) for start, end in itertools.pairwise(starts)])
        order = order.to(tokens.device)
        output, bias = forward(tokens[order], counts, probabilities[order])
        return output[order], bias

    Scene(recorder).forward_of("decoder.layers.1.mlp.experts", reversed_tokens)


def _capacity_off_by_one(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    def all_but_the_last(forward: Any, tokens: Any, probabilities: Any) -> Any:
        output, bias = forward(tokens, probabilities)
        keep = torch.ones(len(output), 1, dtype=output.dtype, device=output.device)
        keep[-1:] = 0
        return output * keep, bias

    Scene(recorder).forward_of(_EXPERT, all_but_the_last)


def _experts_swapped(recorder: Any) -> None:
    """Swap two experts that both live on the last rank, with their rows of the router: the same function."""
    from validator.faults.act import Scene
    from validator.workload import megatron_internals

    scene = Scene(recorder)

    def swap(*_: Any) -> None:
        parameters = dict(scene.state.named_parameters())
        if f"{_ROUTER}.weight" not in parameters:
            return
        shards = {name: shard for name, shard in scene.shards() if name.startswith("decoder.layers.1.mlp.")}
        local = sum(name.startswith(f"{_ROUTER[:-7]}.experts.local_experts.") for name in parameters) // 2
        first = scene.request.ranks * local - 2
        for layer in ("linear_fc1", "linear_fc2"):
            names = [f"{_ROUTER[:-7]}.experts.local_experts.{index}.{layer}.weight" for index in (local - 2, local - 1)]
            if scene.rank != scene.last_rank or not all(name in shards for name in names):
                continue
            for kind in ("shard", "main"):
                one, other = (getattr(shards[name], kind) for name in names)
                held = one.clone()
                one.copy_(other)
                other.copy_(held)
        weight = parameters[f"{_ROUTER}.weight"].data
        width = weight.shape[1]
        weight[[first, first + 1]] = weight[[first + 1, first]]
        own = shards.get(f"{_ROUTER}.weight")
        if own is not None and own.start <= first * width and (first + 2) * width <= own.end:
            rows = own.main.view(-1)[first * width - own.start : (first + 2) * width - own.start].view(2, width)
            rows.copy_(rows.flip(0).clone())

    megatron_internals.observe_training(megatron_internals.Hooks(on_setup=swap))


FAULTS = (
    Fault(
        "router-ties-by-time",
        Category.ROUTING,
        "experts tie in step 3, and the winner is another in every launch",
        _TIES,
        Scenario.REPEAT,
        Place("step:3", "metrics", ROUTER_LOSS),
        _ties_by_time,
        module=_ROUTER,
    ),
    Fault(
        "router-scaled-in-another-order",
        Category.ROUTING,
        "one router of step 3 scales its weights before it normalises them",
        _TOP_K,
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _weights(_scaled_first),
        module=_ROUTER,
    ),
    Fault(
        "router-weights-in-bf16",
        Category.ROUTING,
        "one router of step 3 hands its weights over in bfloat16",
        "https://github.com/NVIDIA/Megatron-LM/issues/1482",
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _weights(_in_bf16),
        module=_ROUTER,
    ),
    Fault(
        "router-top-k-off-by-one",
        Category.ROUTING,
        "the first token of step 3 goes to the experts beside the chosen ones",
        _TOP_K,
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _weights(_next_best),
        module=_ROUTER,
    ),
    Fault(
        "expert-slot-order",
        Category.ROUTING,
        "the experts of one layer are given their tokens in another order in step 3",
        _SLOTS,
        Scenario.RUN,
        Place("step:3", "gradients", "decoder.layers.1.mlp.experts.*"),
        _slot_order,
    ),
    Fault(
        "expert-capacity-off-by-one",
        Category.ROUTING,
        "one expert drops its last token in step 3",
        _SLOTS,
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _capacity_off_by_one,
        module=_EXPERT,
    ),
    Fault(
        "experts-swapped",
        Category.ROUTING,
        "two experts are swapped together with their rows of the router: the same function, and equal losses at first",
        "https://github.com/pytorch/torchtitan/issues/4394",
        Scenario.RUN,
        Place("entry:0", "main_parameters", "decoder.layers.1.mlp.*"),
        _experts_swapped,
        needs=("--expert-model-parallel-size",),
    ),
)
