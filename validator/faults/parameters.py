"""Parameters and buffers that are lost, rounded, or not the same on all ranks."""

from __future__ import annotations

from typing import Any

from validator.faults.model import Category, Fault, Place, Scenario

_BIAS = "decoder.layers.1.mlp.router.expert_bias"
_BIAS_LOST = "https://github.com/flagos-ai/FlagScale/pull/412"
_BIAS_DTYPE = "https://github.com/NVIDIA/Megatron-LM/issues/1482"
_COUNTS = "https://github.com/NVIDIA-NeMo/Automodel/pull/3247"
_STALE = "https://github.com/NVIDIA/Megatron-LM/issues/950"
_TIED = "https://github.com/NVIDIA/Megatron-LM/issues/656"


def _biases(state: Any) -> Any:
    for name, buffer in state.named_buffers():
        if name.endswith(".expert_bias"):
            yield buffer


def _bias_lost(recorder: Any) -> None:
    from validator.faults.act import Scene

    def lose(state: Any) -> None:
        for bias in _biases(state):
            bias.zero_()

    Scene(recorder).after_restore(lose)


def _bias_bf16(recorder: Any) -> None:
    from validator.faults.act import Scene, through_bf16

    scene = Scene(recorder)

    def round_all() -> None:
        for bias in _biases(scene.state):
            through_bf16(bias)

    scene.after_step(round_all)


def _bias_update(change: Any) -> Any:
    """``change(update, tokens, bias, rate, …)`` in the place of the update of all expert biases in the fault's step."""

    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        scene = Scene(recorder)
        scene.replace(
            "megatron.core.distributed.finalize_model_grads",
            "get_updated_expert_bias",
            lambda update: (
                lambda *args, **kwargs: change(update, *args, **kwargs) if scene.acts else update(*args, **kwargs)
            ),
        )

    return install


def _coarse_counts(update: Any, tokens: Any, *args: Any, **kwargs: Any) -> Any:
    import torch

    return update(tokens.float().to(torch.float8_e4m3fn).to(tokens.dtype), *args, **kwargs)


def _counts_twice(update: Any, tokens: Any, *args: Any, **kwargs: Any) -> Any:
    doubled = tokens.clone()
    doubled[:, 0] *= 2
    return update(doubled, *args, **kwargs)


def _sign_reversed(update: Any, tokens: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
    return bias - (update(tokens, bias, *args, **kwargs) - bias)


def _stale_weight(recorder: Any) -> None:
    from validator.faults.act import Scene

    scene = Scene(recorder)
    held: dict[str, Any] = {}

    def weight() -> Any:
        return dict(scene.state.named_parameters())["decoder.layers.3.self_attention.linear_qkv.weight"]

    def hold() -> None:
        held["weight"] = weight().detach().clone()

    def put_back() -> None:
        if scene.rank == scene.last_rank and "weight" in held:
            weight().data.copy_(held["weight"])

    scene.at_update(hold, step=2)
    # When the step's first module runs, and the weights should have been gathered.
    scene.forward_of("embedding", lambda forward, *args, **kwargs: (put_back(), forward(*args, **kwargs))[1])


def _embedding_gradient_not_summed(recorder: Any) -> None:
    from validator.faults.act import Scene

    scene = Scene(recorder)
    scene.replace(
        "megatron.core.distributed.finalize_model_grads",
        "_allreduce_word_embedding_grads",
        lambda reduce: lambda *args, **kwargs: None if scene.acts else reduce(*args, **kwargs),
    )


def _element_lost(recorder: Any) -> None:
    from validator.faults.act import Scene

    def lose(state: Any) -> None:
        for name, shard in state.shards():
            if name.endswith("linear_proj.weight"):
                shard.main.view(-1)[0] = 0.0
                return

    Scene(recorder).after_restore(lose)


FAULTS = (
    Fault(
        "expert-bias-lost",
        Category.PARAMETERS,
        "the routers' expert biases are zero after a restore",
        _BIAS_LOST,
        Scenario.RESTORE,
        Place("setup:3", "buffers", _BIAS),
        _bias_lost,
        quick=True,
    ),
    Fault(
        "expert-bias-bf16",
        Category.PARAMETERS,
        "the routers' expert biases are rounded to bfloat16 after step 3",
        _BIAS_DTYPE,
        Scenario.RUN,
        Place("step:3", "buffers", _BIAS),
        _bias_bf16,
    ),
    Fault(
        "token-counts-rounded",
        Category.PARAMETERS,
        "tokens per expert are summed in a type too coarse for them, and the update of a bias changes its sign",
        _BIAS_DTYPE,
        Scenario.RUN,
        Place("step:3", "buffers", "*.expert_bias"),
        _bias_update(_coarse_counts),
    ),
    Fault(
        "token-counts-doubled",
        Category.PARAMETERS,
        "recomputation counts the tokens of one expert twice",
        _COUNTS,
        Scenario.RUN,
        Place("step:3", "buffers", "*.expert_bias"),
        _bias_update(_counts_twice),
    ),
    Fault(
        "expert-bias-sign",
        Category.PARAMETERS,
        "the expert biases of step 3 are moved the wrong way",
        _BIAS_DTYPE,
        Scenario.RUN,
        Place("step:3", "buffers", _BIAS),
        _bias_update(_sign_reversed),
    ),
    Fault(
        "gathered-weight-stale",
        Category.PARAMETERS,
        "the last rank computes step 3 with one weight of the step before",
        _STALE,
        Scenario.RUN,
        Place("step:3", "gathered_parameters", "decoder.layers.3.self_attention.linear_qkv.weight"),
        _stale_weight,
    ),
    Fault(
        "embedding-gradient-not-summed",
        Category.PARAMETERS,
        "the first and last stage do not sum the gradients of the embedding that they share",
        _TIED,
        Scenario.RUN,
        Place("step:3", "gradients", "embedding.word_embeddings.weight"),
        _embedding_gradient_not_summed,
        needs=("--pipeline-model-parallel-size",),
    ),
    Fault(
        "parameter-element-lost",
        Category.PARAMETERS,
        "one element of one main parameter is zero after a restore",
        "https://github.com/pytorch/pytorch/issues/144657",
        Scenario.RESTORE,
        Place("setup:3", "main_parameters", "*linear_proj.weight"),
        _element_lost,
    ),
)
