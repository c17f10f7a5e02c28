"""All contact with Megatron's internals, in one place.

Tried with megatron-core 0.19.0 and 0.19.2. Where another version lacks something, ``require`` says what, in one
sentence.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from validator.errors import LaunchError

TRIED_VERSIONS = ("0.19.0", "0.19.2")


def version() -> str:
    """The version of the Megatron Core that is loaded, without the commit of whatever repository it lies in."""
    return str(require("megatron.core.package_info", "__version__")).partition("+")[0]


def require(module: str, name: str) -> Any:
    """Attribute ``name`` (dotted) of ``module``; raises ``LaunchError`` with one sentence where this Megatron lacks
    it.
    """
    try:
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if missing.split(".")[0] != "megatron":
            raise LaunchError(
                f"the package {missing} is missing, which {module} needs; install it beside megatron-core."
            ) from None
        raise LaunchError(_lacks(missing)) from None
    except AttributeError:
        raise LaunchError(_lacks(f"{module}.{name}")) from None
    return value


def _lacks(what: str) -> str:
    try:
        found = importlib.import_module("megatron.core.package_info").__version__
    except (ImportError, AttributeError):
        return "megatron-core is not installed; install one of " + ", ".join(TRIED_VERSIONS) + "."
    return (
        f"megatron-core {found} lacks {what}, which the workload needs; versions tried are {', '.join(TRIED_VERSIONS)}."
    )


def prepare(device: str, on_device: Callable[[], AbstractContextManager[None]] | None, spec: str) -> None:
    """Bind what has to differ from stock before ``pretrain`` runs.

    On every device: the data helper ships compiled, and the wheel has no Makefile to compile it with. With the
    reference layers: Adam and the final norm are ours, of plain PyTorch. On the CPU also: CUDA is not asked for, and
    the device's generator takes part in model building and training steps.
    """
    require("megatron.training.determinism", "apply_determinism_to_args")  # --deterministic-mode sets all by itself
    require("megatron.training.initialize", "_compile_dependencies")
    initialize = importlib.import_module("megatron.training.initialize")
    initialize._compile_dependencies = lambda: None  # type: ignore[attr-defined]
    if spec == "reference":
        _bind_optimizer()
        _bind_final_norm()
    if device != "cpu":
        return
    assert on_device is not None
    _bind_cpu_generator()

    original_initialize = require("megatron.training.training", "initialize_megatron")
    training = importlib.import_module("megatron.training.training")

    def initialize_without_cuda(*args: Any, **kwargs: Any) -> Any:
        return original_initialize(*args, **{**kwargs, "allow_no_cuda": True})

    training.initialize_megatron = initialize_without_cuda  # type: ignore[attr-defined]
    for name in ("setup_model_and_optimizer", "train_step"):
        setattr(training, name, _within(on_device, require("megatron.training.training", name)))


def _within(context: Callable[[], AbstractContextManager[None]], function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    return call


def _bind_cpu_generator() -> None:
    """``_set_cuda_rng_state`` goes through a queue that without CUDA is never worked off: every set would be lost."""
    require("megatron.core.tensor_parallel.random", "_set_cuda_rng_state")
    random = importlib.import_module("megatron.core.tensor_parallel.random")

    def set_state(new_state: Tensor, device: int = -1, graph_safe: bool = False) -> None:
        torch.cuda.set_rng_state(new_state)

    random._set_cuda_rng_state = set_state  # type: ignore[attr-defined]


def _bind_optimizer() -> None:
    """Put our Adam where Transformer Engine's or Apex's would be, so that Megatron takes their path through
    checkpoints.
    """
    from validator.workload.adam import Adam

    require("megatron.core.optimizer", "USING_PYTORCH_OPTIMIZER")
    require("megatron.core.optimizer.distrib_optimizer", "HAVE_APEX_OR_TE")
    optimizer = importlib.import_module("megatron.core.optimizer")
    distributed = importlib.import_module("megatron.core.optimizer.distrib_optimizer")
    optimizer.Adam = Adam  # type: ignore[attr-defined]
    optimizer.USING_PYTORCH_OPTIMIZER = False  # type: ignore[attr-defined]
    distributed.Adam = Adam  # type: ignore[attr-defined]
    distributed.HAVE_APEX_OR_TE = True  # type: ignore[attr-defined]
    distributed.USING_APEX_OPTIMIZER = True  # type: ignore[attr-defined]


def _bind_final_norm() -> None:
    """The hybrid stack builds its last norm from Transformer Engine by name."""
    from validator.workload.norm import RMSNorm

    require("megatron.core.models.hybrid.hybrid_block", "TENorm")
    block = importlib.import_module("megatron.core.models.hybrid.hybrid_block")
    block.TENorm = RMSNorm  # type: ignore[attr-defined]


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


#: Functions of Megatron and of the workload that compute outside of any module. What a version lacks is left out.
_FUNCTIONS = (
    ("validator.workload.step", "loss_function"),
    ("megatron.core.distributed.finalize_model_grads", "_update_router_expert_bias"),
    ("megatron.core.optimizer.clip_grads", "get_grad_norm_fp32"),
    ("megatron.core.optimizer.clip_grads", "clip_grad_by_total_norm_fp32"),
)


def functions_outside_modules() -> Iterator[Callable[..., Any]]:
    """What a training step calls to compute with tensors where no module's forward or backward pass does."""
    for module, name in _FUNCTIONS:
        function = getattr(importlib.import_module(module), name, None)
        if function is not None:
            yield function


def replace_finalizer(
    modules: list[torch.nn.Module], observed: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[[], None]:
    """Put ``observed`` around the function that reduces the gradients of all micro-batches, which the models'
    configuration holds; returns what takes it away.
    """
    configurations = {id(config): config for module in modules if (config := getattr(module, "config", None))}
    kept = []
    for config in configurations.values():
        if (function := getattr(config, "finalize_model_grads_func", None)) is not None:
            kept.append((config, function))
            config.finalize_model_grads_func = observed(function)

    def undo() -> None:
        for config, function in kept:
            config.finalize_model_grads_func = function

    return undo


def replace_everywhere(function: Callable[..., Any], other: Callable[..., Any]) -> Callable[[], None]:
    """Bind every name that Megatron, Transformer Engine, the workload and ``torch.distributed`` have for ``function``
    to ``other``; returns what binds them back.

    Megatron keeps many of these functions under names of its own, from when its modules were imported.
    """
    changed: list[tuple[Any, str]] = []
    # PyTorch compares a message's function with its own by identity.
    messages = {"torch.distributed.distributed_c10d"} if function.__name__ in ("isend", "irecv") else set()
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        if (
            package in ("megatron", "transformer_engine")
            or name in {"torch.distributed", *messages}
            or (name.startswith("validator.workload.") and not name.startswith("validator.workload.trace"))
        ):
            names = [key for key, value in list(getattr(module, "__dict__", {}).items()) if value is function]
            changed += [(module, key) for key in names]
    for module, key in changed:
        setattr(module, key, other)

    def undo() -> None:
        for module, key in changed:
            if getattr(module, key, None) is other:
                setattr(module, key, function)

    return undo


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


def modules_of(model: list[Any]) -> list[torch.nn.Module]:
    """The model chunks without their data-parallel and precision wrappers (whose ``buffers`` shadows PyTorch's)."""
    unwrap = require("megatron.core.utils", "unwrap_model")
    return list(unwrap(model))


#: What Transformer Engine keeps for delayed scaling beside a module's parameters, in the ``fp8_meta`` of its modules:
#: the names are those of 2.x (``transformer_engine/pytorch/module/base.py``).
_SCALING = ("scale", "scale_inv", "amax_history")


def fp8_states(module: torch.nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Scales and amax histories of every module below ``module`` that computes in FP8 with delayed scaling.

    They decide how the next step is rounded, and are no buffers of PyTorch's. Nothing for other recipes, which derive
    their scales from what they scale.
    """
    for path, part in module.named_modules():
        meta = getattr(part, "fp8_meta", None)
        for key in sorted(meta, key=str) if isinstance(meta, Mapping) else ():
            for name in _SCALING:
                value = getattr(meta[key], name, None)
                if isinstance(value, Tensor):
                    yield f"{path}.fp8_meta.{key}.{name}".lstrip("."), value


_AXES = ("rowwise", "columnwise")


def plain_parts(name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """The tensor itself; for one of Transformer Engine's quantised ones its bytes and scales, each under a name of its
    own.

    Copies along the other axis are derived from the first and may be stale, so they count only where it is absent.
    """
    if not hasattr(tensor, "_data") and not hasattr(tensor, "_rowwise_data"):
        yield name, tensor
        return
    for data, scale in (("_data", "_scale_inv"), *((f"_{axis}_data", f"_{axis}_scale_inv") for axis in _AXES)):
        parts = [(part, getattr(tensor, part, None)) for part in (data, scale)]
        if isinstance(parts[0][1], Tensor):
            yield from ((f"{name}/{part}", value) for part, value in parts if isinstance(value, Tensor))
            return
    raise LaunchError(
        f"the quantised tensor {name} is a {type(tensor).__name__} that holds no data the recorder knows."
    )


@dataclass(frozen=True)
class OwnedShard:
    """The part of one parameter that this rank's distributed optimizer owns.

    ``start`` and ``end`` are positions in the flattened parameter. ``shard``: that part of the parameter, in its dtype;
    ``main``: the float32 copy that the optimizer updates (``shard`` itself where the parameter is float32).
    """

    parameter: Tensor
    start: int
    end: int
    shard: Tensor
    main: Tensor
    optimizer: Any

    @property
    def state(self) -> Mapping[str, Any]:
        """The optimizer's tensors and numbers for this part; empty before the first step."""
        state: Mapping[str, Any] = self.optimizer.state.get(self.main, {})
        return state

    @property
    def gradient(self) -> Tensor:
        """The reduced gradient of this part, as the optimizer is about to read it."""
        gradient: Tensor = self.parameter.main_grad  # type: ignore[attr-defined]
        return gradient.view(-1)[self.start : self.end]


def inner_optimizers(optimizer: Any) -> list[Any]:
    """The distributed optimizers that a chained optimizer consists of; ``LaunchError`` for any other kind."""
    distributed = require("megatron.core.optimizer.distrib_optimizer", "DistributedOptimizer")
    inner = [one for one in getattr(optimizer, "chained_optimizers", [optimizer]) if not one.is_stub_optimizer]
    for one in inner:
        if not isinstance(one, distributed):
            raise LaunchError(
                f"the optimizer is {type(one).__name__}, which the recorder cannot read; "
                "add --use-distributed-optimizer to the pipeline's arguments."
            )
    return inner


def owned_shards(optimizer: Any) -> Iterator[OwnedShard]:
    """Every parameter shard that this rank owns, in the optimizer's own order."""
    for one in inner_optimizers(optimizer):
        half = zip(one.model_float16_groups, one.shard_float16_groups, one.shard_fp32_from_float16_groups, strict=True)
        full = zip(one.model_fp32_groups, one.shard_fp32_groups, one.shard_fp32_groups, strict=True)
        for parameters, shards, mains in (*half, *full):
            for parameter, shard, main in zip(parameters, shards, mains, strict=True):
                span = one._get_model_param_range_map(parameter)["param"]
                yield OwnedShard(parameter, span.start, span.end, shard, main, one.optimizer)


def random_tracker_states() -> Mapping[str, Tensor]:
    """States of Megatron's named generators (``model-parallel-rng``, ``expert-parallel-rng``, …)."""
    states: Mapping[str, Tensor] = require(
        "megatron.core.tensor_parallel.random", "get_cuda_rng_tracker"
    )().get_states()
    return states


def multi_token_prediction_losses() -> Tensor | None:
    """Raw local losses of each multi-token-prediction depth, summed over micro-batches: float32 [depths]."""
    tracker = require("megatron.core.transformer.multi_token_prediction", "MTPLossLoggingHelper").tracker
    values: Tensor | None = tracker.get("loss_values")
    return values


class RouterLosses:
    """The router losses that this rank records in a step, per layer, before Megatron reduces and clears them."""

    def __init__(self) -> None:
        tracker_class = require("megatron.core.transformer.moe.moe_logging", "MoEMetricsTracker")
        self._tracker = require("megatron.core.transformer.moe.moe_logging", "get_moe_metrics_tracker")
        record = tracker_class.record
        self._recorded: dict[tuple[str, int], None] = {}

        def observed_record(
            tracker: Any, name: str, value: Tensor, layer_number: int, *args: Any, **kwargs: Any
        ) -> Any:
            if layer_number is not None:
                self._recorded[name, int(layer_number)] = None
            return record(tracker, name, value, layer_number, *args, **kwargs)

        tracker_class.record = observed_record

    def take(self) -> dict[tuple[str, int], Tensor]:
        """(name, layer) -> the raw local sum over micro-batches, a float32 scalar; forgets the step."""
        metrics = self._tracker().metrics
        taken = {(name, layer): metrics[name].values[layer - 1] for name, layer in sorted(self._recorded)}
        self._recorded.clear()
        return taken


def set_random_tracker_states(states: Mapping[str, Tensor]) -> None:
    """Set Megatron's named generators to states that ``random_tracker_states`` gave."""
    tracker = require("megatron.core.tensor_parallel.random", "get_cuda_rng_tracker")()
    tracker.set_states({name: state.clone() for name, state in states.items()})


def generator_states() -> dict[str, Any]:
    """PyTorch's CPU and device generators and Megatron's named ones, as ``set_generator_states`` takes them."""
    named = {name: state.clone() for name, state in random_tracker_states().items()}
    return {"cpu": torch.get_rng_state(), "device": torch.cuda.get_rng_state(), "named": named}


def set_generator_states(states: Mapping[str, Any]) -> None:
    """Set the generators to states that ``generator_states`` gave."""
    torch.set_rng_state(states["cpu"])
    torch.cuda.set_rng_state(states["device"])
    set_random_tracker_states(states["named"])


def gather_objects(own: Any) -> list[Any]:
    """What every rank hands over, by rank."""
    everyone: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everyone, own)
    return everyone


def learning_rate(optimizer: Any) -> float:
    """The learning rate as Megatron logs it."""
    rate = require("megatron.core.optimizer_param_scheduler", "get_canonical_lr_for_logging")(optimizer.param_groups)
    return float(rate if rate is not None else "nan")


def coordinates() -> dict[str, int]:
    """This rank's place in the parallel layout."""
    mpu = require("megatron.core", "mpu")
    return {
        "rank": torch.distributed.get_rank(),
        "tp": mpu.get_tensor_model_parallel_rank(),
        "pp": mpu.get_pipeline_model_parallel_rank(),
        "dp": mpu.get_data_parallel_rank(),
        "ep": mpu.get_expert_model_parallel_rank(),
    }


def micro_batches() -> int:
    """Micro-batches of one step on this rank."""
    return int(require("megatron.core.num_microbatches_calculator", "get_num_microbatches")())


def global_batch_size() -> int:
    """Samples of one step on all ranks."""
    return int(require("megatron.core.num_microbatches_calculator", "get_current_global_batch_size")())
