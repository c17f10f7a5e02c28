"""Megatron's own training loop: started, given its batches, observed."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from validator.workload.megatron_internals.versions import require


def parse_arguments(arguments: Mapping[str, Any] | None = None) -> Any:
    """Parse ``sys.argv`` with Megatron's own parser and set its global variables; returns the resolved namespace."""
    return require("megatron.training.arguments", "parse_and_validate_args")(args_defaults=dict(arguments or {}))


def pretrain(args: Any, datasets_provider: Any, forward_step: Any) -> None:
    """Megatron's own training loop on the hybrid model that ``args`` describe."""
    config = require("megatron.training.argument_utils", "hybrid_config_from_args")(args)
    container = require("megatron.training.argument_utils", "pretrain_cfg_container_from_args")(args, config)
    model_type = require("megatron.core.enums", "ModelType").encoder_or_decoder
    require("megatron.training.training", "pretrain")(container, datasets_provider, model_type, forward_step)


def tokenizer(args: Any) -> Any:
    return require("megatron.core.tokenizers.utils.build_tokenizer", "build_tokenizer")(args)


def multi_token_prediction_here(vp_stage: int | None) -> bool:
    """Whether this pipeline stage computes the multi-token-prediction losses."""
    args = require("megatron.training", "get_args")()
    if args.mtp_num_layers is None:
        return False
    config = require("megatron.training.arguments", "core_transformer_config_from_args")(args)
    return bool(
        require("megatron.core.transformer.multi_token_prediction", "mtp_on_this_rank")(
            layout=config.pipeline_model_parallel_layout,
            mtp_num_layers=config.mtp_num_layers,
            ignore_virtual=False,
            vp_stage=vp_stage,
        )
    )


_BATCH_KEYS = ("tokens", "labels", "loss_mask", "attention_mask", "position_ids")


def next_batch(data_iterator: Iterator[Any], model: Any) -> dict[str, Tensor | None]:
    """The next micro-batch on this rank: read on tensor rank 0, broadcast to the others, ``None`` where a stage needs
    none.

    ``tokens``, ``labels``, ``position_ids``: int64 [micro batch, sequence]; ``loss_mask``: float32 of the same shape.
    """
    args = require("megatron.training", "get_args")()
    mpu = require("megatron.core", "mpu")
    vp_stage = require("megatron.core.utils", "get_attr_wrapped_model")(model, "vp_stage")
    predicts = multi_token_prediction_here(vp_stage)
    if not require("megatron.training.utils", "is_first_or_last_pipeline_stage")(vp_stage) and not predicts:
        return dict.fromkeys(_BATCH_KEYS)
    tensor_rank = mpu.get_tensor_model_parallel_rank()
    batch: dict[str, Any] = {}
    if tensor_rank == 0:
        loaded = next(data_iterator)
        batch = {key: value.cuda(non_blocking=True) for key, value in loaded.items() if isinstance(value, Tensor)}
    for key in (*_BATCH_KEYS, "cu_seqlens", "cu_seqlens_padded", "max_seqlen", "local_cp_size", "hybrid_cp_group"):
        batch.setdefault(key, None)
    batch = require("megatron.core.utils", "get_batch_on_this_tp_rank")(
        batch,
        broadcast_src_rank=mpu.get_tensor_model_parallel_src_rank(),
        broadcast_group=mpu.get_tensor_model_parallel_group(),
        has_cu_seqlens=False,
        is_hybrid_cp=False,
        create_attention_mask_in_dataloader=args.create_attention_mask_in_dataloader,
        cp_size=args.context_parallel_size,
        tp_rank=tensor_rank,
        micro_batch_size=args.micro_batch_size,
        seq_length=args.seq_length,
        mtp_on_this_rank=predicts,
        pipeline_model_parallel_size=args.pipeline_model_parallel_size,
        is_pipeline_first_stage=mpu.is_pipeline_first_stage(),
        is_pipeline_last_stage=mpu.is_pipeline_last_stage(),
    )
    return {key: batch.get(key) for key in _BATCH_KEYS}


def _ignore(*_: Any) -> None:
    """A hook that nobody asked for."""


@dataclass(frozen=True)
class Hooks:
    """What an observer of the training loop is called with. Steps count finished optimizer steps."""

    on_setup: Callable[[list[Any], Any, Any, Any], None] = _ignore  # model chunks, optimizer, scheduler, arguments
    before_step: Callable[[int], None] = _ignore  # steps done so far; the loop is about to enter train_step
    before_update: Callable[[], None] = _ignore  # gradients are reduced; optimizer.step() is about to begin
    after_step: Callable[[Mapping[str, Tensor], bool, Any], None] = _ignore  # reduced losses, skipped, gradient norm
    on_end: Callable[[], None] = _ignore  # the loop has ended
    after_update: Callable[[], None] = _ignore  # optimizer.step() has returned


def observe_training(hooks: Hooks) -> None:
    """Call ``hooks`` from around Megatron's own functions, which it looks up by name at every call."""
    setup = require("megatron.training.training", "setup_model_and_optimizer")
    train_step = require("megatron.training.training", "train_step")
    train = require("megatron.training.training", "train")
    get_args = require("megatron.training", "get_args")
    training = importlib.import_module("megatron.training.training")

    def observed_setup(*args: Any, **kwargs: Any) -> Any:
        model, optimizer, scheduler = setup(*args, **kwargs)
        step = optimizer.step

        def observed_update(*step_args: Any, **step_kwargs: Any) -> Any:
            hooks.before_update()
            result = step(*step_args, **step_kwargs)
            hooks.after_update()
            return result

        optimizer.step = observed_update
        hooks.on_setup(model, optimizer, scheduler, get_args())
        return model, optimizer, scheduler

    def observed_step(*args: Any, **kwargs: Any) -> Any:
        hooks.before_step(int(kwargs["iteration"]))
        result = train_step(*args, **kwargs)
        losses, skipped, _, _, _, gradient_norm = result[:6]
        hooks.after_step(losses, bool(skipped), gradient_norm)
        return result

    def observed_train(*args: Any, **kwargs: Any) -> Any:
        try:
            result = train(*args, **kwargs)
        except SystemExit as leaving:  # the loop's way out at --exit-interval
            if not leaving.code:
                hooks.on_end()
            raise
        hooks.on_end()
        return result

    training.setup_model_and_optimizer = observed_setup  # type: ignore[attr-defined]
    training.train_step = observed_step  # type: ignore[attr-defined]
    training.train = observed_train  # type: ignore[attr-defined]


def wrap_phases(within: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace a micro-batch's forward and backward pass by ``within("forward", …)`` and ``within("backward", …)``."""
    module = "megatron.core.pipeline_parallel.schedules"
    for phase in ("forward", "backward"):
        function = require(module, f"{phase}_step")
        setattr(importlib.import_module(module), f"{phase}_step", within(phase, function))


def observe_checkpoints(on_save: Callable[[Mapping[str, Any]], None]) -> None:
    """Call ``on_save`` with the state dictionary of every save, before it is written."""
    save = require("megatron.training.checkpointing", "save_checkpoint")
    generate = require("megatron.training.checkpointing", "generate_state_dict")
    checkpointing = importlib.import_module("megatron.training.checkpointing")
    saving = False

    def observed_save(*args: Any, **kwargs: Any) -> Any:
        nonlocal saving
        saving = True
        try:
            return save(*args, **kwargs)
        finally:
            saving = False

    def observed_generate(*args: Any, **kwargs: Any) -> Any:
        state = generate(*args, **kwargs)
        if saving:
            on_save(state)
        return state

    checkpointing.generate_state_dict = observed_generate  # type: ignore[attr-defined]
    checkpointing.save_checkpoint = observed_save  # type: ignore[attr-defined]
    importlib.import_module("megatron.training.training").save_checkpoint = observed_save  # type: ignore[attr-defined]
