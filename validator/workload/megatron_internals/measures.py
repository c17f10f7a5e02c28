"""What Megatron knows of a step and of this rank's place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from validator.workload.megatron_internals.versions import require


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


def gather_objects(own: Any) -> list[Any]:
    """What every rank hands over, by rank."""
    everyone: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(everyone, own)
    return everyone
