"""The metrics of one step on one rank, with their exact bits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from validator.trajectory.metrics import Metric
from validator.workload import megatron_internals

_WIDTHS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float64: torch.int64}


def metric_of(value: Tensor | float | int) -> Metric:
    """The metric that holds ``value`` exactly; a tensor has one element, of float32, float64 or bfloat16."""
    if not isinstance(value, Tensor):
        return Metric.of(value, "int64" if isinstance(value, int) else "float64")
    flat = value.detach().reshape(1).cpu()
    bytes_wide = flat.element_size()
    raw = int(flat.view(_WIDTHS[flat.dtype]).item()) & ((1 << (8 * bytes_wide)) - 1)
    return Metric(str(flat.dtype).removeprefix("torch."), f"{raw:0{2 * bytes_wide}x}")


def on_host(tables: Mapping[str, Mapping[Any, Any]]) -> dict[str, dict[Any, Any]]:
    """The same tables, with tensors of one element in the host's memory: all of one device and dtype come in one copy.

    Each copy waits for the device, and a step has some sixty metrics.
    """
    found = {table: dict(values) for table, values in tables.items()}
    alike: dict[tuple[torch.device, torch.dtype], list[tuple[str, Any]]] = {}
    for table, values in found.items():
        for name, value in values.items():
            if isinstance(value, Tensor):
                alike.setdefault((value.device, value.dtype), []).append((table, name))
    for places in alike.values():
        brought = torch.stack([found[table][name].detach().reshape(()) for table, name in places]).cpu()
        for (table, name), value in zip(places, brought.unbind(), strict=True):
            found[table][name] = value
    return found


class StepMetrics:
    """Collects what one step reports, from the loss function to the return of ``train_step``.

    * ``lm_loss``: as ``train_step`` returns it, reduced over data parallel, on the last pipeline stage
    * ``lm_loss_sum.M``, ``tokens.M``: this rank's own sums for micro-batch M, as the loss function computes them
    * ``mtp_loss.D``: this rank's mean over micro-batches for depth D
    * ``seq_load_balancing_loss.layerL`` and its like: this rank's mean over micro-batches for layer L
    * ``training_loss``: LM loss + scaled multi-token-prediction losses + scaled router losses, in this order, in
      float64: the terms that this rank holds. Megatron has no such number: its other losses enter through autograd
      only.
    * ``grad_norm``, ``learning_rate``, ``loss_scale``, ``skipped``, ``tokens``
    """

    def __init__(self, optimizer: Any, args: Any) -> None:
        self._optimizer = optimizer
        self._args = args
        self._router_losses = megatron_internals.RouterLosses() if args.num_experts else None
        self._sums: list[Tensor] = []

    def on_loss(self, report: Tensor) -> None:
        """One micro-batch's loss sum and token count, float32 [2]."""
        self._sums.append(report)

    def take(self, losses: Mapping[str, Tensor], skipped: bool, gradient_norm: Any) -> dict[str, Metric]:
        """The metrics of the step that has just returned; forgets the step."""
        depths = megatron_internals.multi_token_prediction_losses() if self._sums else None
        here = on_host(
            {
                "losses": losses,
                "sums": {index: report[0] for index, report in enumerate(self._sums)},
                "tokens": {index: report[1] for index, report in enumerate(self._sums)},
                "depths": {} if depths is None else dict(enumerate(depths, start=1)),
                "routers": self._router_losses.take() if self._router_losses else {},
                "optimizer": {"norm": gradient_norm, "scale": self._optimizer.get_loss_scale()},
            }
        )
        metrics: dict[str, Metric] = {}
        training_loss = 0.0
        for name, value in here["losses"].items():
            metrics[name.replace(" ", "_")] = metric_of(value)
        if "lm loss" in losses:
            training_loss += float(here["losses"]["lm loss"])

        tokens = 0
        for index, value in here["sums"].items():
            micro_batch = int(here["tokens"][index])
            metrics[f"lm_loss_sum.{index}"] = metric_of(value)
            metrics[f"tokens.{index}"] = metric_of(micro_batch)
            tokens += micro_batch
        micro_batches = megatron_internals.micro_batches()
        for depth, value in here["depths"].items():
            mean = float(value) / micro_batches
            metrics[f"mtp_loss.{depth}"] = Metric.of(mean)
            training_loss += self._args.mtp_loss_scaling_factor / self._args.mtp_num_layers * mean
        for (name, layer), value in here["routers"].items():
            mean = float(value) / micro_batches
            metrics[f"{name}.layer{layer}"] = Metric.of(mean)
            training_loss += self._coefficient(name) * mean
        metrics["training_loss"] = Metric.of(training_loss)

        norm = here["optimizer"]["norm"]
        if norm is not None:
            metrics["grad_norm"] = metric_of(norm if isinstance(norm, Tensor) else float(norm))
        metrics["learning_rate"] = Metric.of(megatron_internals.learning_rate(self._optimizer))
        metrics["loss_scale"] = metric_of(here["optimizer"]["scale"])
        metrics["skipped"] = Metric.of(int(skipped), "int64")
        metrics["tokens"] = Metric.of(tokens, "int64")
        self._sums = []
        return metrics

    def _coefficient(self, name: str) -> float:
        """Weight of a router loss in the training loss; zero for what is logged but not trained on."""
        if name == "z_loss":
            return float(self._args.moe_z_loss_coeff or 0.0)
        kinds, coefficients = self._args.moe_router_load_balancing_type, self._args.moe_aux_loss_coeff
        if not isinstance(kinds, list):
            kinds, coefficients = [kinds], [coefficients]
        elif not isinstance(coefficients, list):
            coefficients = [coefficients] * len(kinds)
        by_name = {
            "load_balancing_loss": "aux_loss",
            "seq_load_balancing_loss": "seq_aux_loss",
            "global_load_balancing_loss": "global_aux_loss",
        }
        return float(dict(zip(kinds, coefficients, strict=True)).get(by_name.get(name, ""), 0.0))
