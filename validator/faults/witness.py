"""Did the bits really change? An account of a launch that shares nothing with the recorder.

SHA-256 over whole parts of what PyTorch and Megatron hold, walked in their own order, at the same moments: parameters
and buffers of the wrapped model, every tensor of the inner optimizers, reduced gradients, generators, position, batch,
and what the step returned. No names, no leaves, no digest of ours. Two launches with equal accounts had equal bits.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, final

import numpy
import torch

from validator.workload import megatron_internals, step
from validator.workload.digests import plain_torch

if TYPE_CHECKING:
    from validator.workload.recorder import Recorder


@final
class Witness:
    """Writes one line a moment into ``witness-RANK.jsonl`` of the launch's scratch folder."""

    def __init__(self, recorder: Recorder) -> None:
        self._file = recorder.request.account_file(recorder.rank)
        self._line: dict[str, str] = {}
        self._batch = hashlib.sha256()
        self._model: list[Any] = []
        self._optimizer: Any = None
        self._scheduler: Any = None
        self._args: Any = None
        self._done = 0
        step.observe(self._on_batch, self._on_loss)
        megatron_internals.observe_training(
            megatron_internals.Hooks(
                self._on_setup, self._before_step, self._before_update, self._after_step, self._on_end
            )
        )

    def _on_setup(self, model: list[Any], optimizer: Any, scheduler: Any, args: Any) -> None:
        self._model, self._optimizer, self._scheduler, self._args = model, optimizer, scheduler, args
        self._done = int(args.iteration)
        self._write("setup")

    def _on_batch(self, batch: Mapping[str, torch.Tensor | None]) -> None:
        with plain_torch():
            for tensor in batch.values():
                if tensor is not None:
                    self._batch.update(_raw(tensor))

    def _on_loss(self, report: torch.Tensor) -> None:
        with plain_torch():
            self._batch.update(_raw(report))

    def _before_step(self, done: int) -> None:
        self._write("step" if self._line else "entry")
        self._done = done + 1

    def _before_update(self) -> None:
        with plain_torch():
            self._line["gradients"] = _sum(
                parameter.main_grad for chunk in self._model for parameter in chunk.parameters()
            )

    def _after_step(self, losses: Mapping[str, torch.Tensor], skipped: bool, gradient_norm: Any) -> None:
        with plain_torch():
            told = {name: value.double().tolist() for name, value in losses.items()}
            depths = megatron_internals.multi_token_prediction_losses()
            tracker = megatron_internals.require(
                "megatron.core.transformer.moe.moe_logging", "get_moe_metrics_tracker"
            )()
            router = {name: metric.values.tolist() for name, metric in tracker.metrics.items()}
            norm = None if gradient_norm is None else float(gradient_norm).hex()
            self._line["told"] = repr((told, skipped, norm, None if depths is None else depths.tolist(), router))
            self._line["batch"] = self._batch.hexdigest()
            self._batch = hashlib.sha256()

    def _on_end(self) -> None:
        self._write("step")

    def _write(self, phase: str) -> None:
        with plain_torch():
            # What the wrapped model holds, stale or not, is a consequence; what counts is what a checkpoint would hold.
            self._line |= {
                "moment": f"{phase}:{self._done}",
                "buffers": _sum(buffer for chunk in self._modules() for _, buffer in chunk.named_buffers()),
                "optimizer": _sum(self._of_optimizer()),
                "numbers": repr(self._numbers()),
                "generators": self._generators(),
            }
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self._line, sort_keys=True) + "\n")
        self._line = {}

    def _modules(self) -> list[torch.nn.Module]:
        return megatron_internals.modules_of(self._model)

    def _of_optimizer(self) -> Iterator[torch.Tensor]:
        for one in megatron_internals.inner_optimizers(self._optimizer):
            for group in one.optimizer.param_groups:
                for parameter in group["params"]:
                    yield parameter
                    yield from (v for v in one.optimizer.state.get(parameter, {}).values() if torch.is_tensor(v))
            for shards in (*one.shard_float16_groups, *one.shard_fp32_groups):
                yield from shards

    def _numbers(self) -> list[Any]:
        groups = [
            {key: value for key, value in group.items() if key != "params"}
            for one in megatron_internals.inner_optimizers(self._optimizer)
            for group in one.optimizer.param_groups
        ]
        return [groups, self._scheduler.state_dict(), self._args.consumed_train_samples]

    def _generators(self) -> str:
        states = [torch.get_rng_state(), torch.cuda.get_rng_state()]
        states += [
            state if torch.is_tensor(state) else state.get_state()
            for state in megatron_internals.random_tracker_states().values()
        ]
        whole = hashlib.sha256(repr((random.getstate(), numpy.random.get_state()[1].tolist())).encode())
        whole.update(repr(numpy.random.get_state()[2:]).encode())
        for state in states:
            whole.update(_raw(state))
        return whole.hexdigest()


def _sum(tensors: Iterator[torch.Tensor]) -> str:
    whole = hashlib.sha256()
    for tensor in tensors:
        whole.update(_raw(tensor))
    return whole.hexdigest()


def _raw(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().cpu().contiguous().view(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
