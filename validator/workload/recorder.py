"""Fingerprints of one rank as training goes: when each state group is read, and what is written.

``batch`` is digested as the forward pass is given it; ``gradients`` and ``gathered_parameters`` at entry to
``optimizer.step()``, when the gradients are reduced and every forward pass of the step has consumed the parameters;
``metrics`` when ``train_step`` returns; the persistent groups when the loop next reaches ``train_step``, or ends.

On a GPU digests are queued behind the work that they observe, and a moment is written at the next of these points, when
they have long arrived: nothing waits for the device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from validator.errors import LaunchError
from validator.execute.request import LaunchRequest
from validator.trajectory.groups import PERSISTENT_GROUPS, Group, Moment, Phase
from validator.trajectory.known_answers import check_known_answers
from validator.trajectory.metrics import Metric
from validator.trajectory.record import GroupRecord, metric_record, metric_table
from validator.trajectory.writer import RankWriter
from validator.workload import megatron_internals
from validator.workload.coverage import Coverage
from validator.workload.digests import Digester, plain_torch
from validator.workload.proofs import Samples, flip_and_restore
from validator.workload.state import Leaf, TrainingState
from validator.workload.step_metrics import StepMetrics


class Recorder:
    """Writes one rank's trajectory. Reads what it observes and changes nothing, but for one bit, flipped and flipped
    back, at the end.
    """

    def __init__(self, request: LaunchRequest, rank: int, digester: Digester | None = None) -> None:
        self.request = request
        self.rank = rank
        self.digester = digester or _digester(request)
        self.writer = RankWriter(request.trajectory, rank, request.ranks, self.digester.algorithm)
        self.samples = Samples(request.samples, rank, request.samples_directory)
        self.coverage = Coverage()
        self._state: TrainingState | None = None
        self._metrics: StepMetrics | None = None
        self._batch: list[Leaf] = []
        self._micro_batch = 0
        self._entered = False
        self._step = 0
        self._records: dict[Group, Callable[[], GroupRecord]] = {}
        self._pending: tuple[Moment, dict[Group, Callable[[], GroupRecord]], dict[str, Metric]] | None = None
        self._step_metrics: dict[str, Metric] = {}
        self._flips: dict[str, dict[str, Any]] = {}

    @property
    def state(self) -> TrainingState:
        assert self._state is not None, "the recorder is asked for the training state before it was set up"
        return self._state

    def hooks(self) -> megatron_internals.Hooks:
        """What Megatron's training loop has to call."""
        return megatron_internals.Hooks(
            self.on_setup, self.before_step, self.before_update, self.after_step, self.on_end
        )

    def on_setup(self, model: list[Any], optimizer: Any, scheduler: Any, args: Any) -> None:
        """Model and optimizer are built, and restored where the launch loads a checkpoint."""
        self._state = TrainingState(model, optimizer, scheduler, args)
        self._metrics = StepMetrics(optimizer, args)
        self._step = int(args.iteration)
        with plain_torch():
            self._append(Moment(self._step, Phase.SETUP))

    def on_batch(self, batch: Mapping[str, Tensor | None]) -> None:
        """The forward pass is given a micro-batch; its content is copied, since what follows may write into it."""
        with plain_torch():
            for name, tensor in sorted(batch.items()):
                if tensor is not None:
                    self._batch.append(Leaf(f"micro_batch{self._micro_batch}/{name}", tensor.detach().clone()))
        self._micro_batch += 1

    def on_loss(self, report: Tensor) -> None:
        """The loss function has a micro-batch's loss sum and token count."""
        assert self._metrics is not None
        self._metrics.on_loss(report)

    def before_step(self, done: int) -> None:
        """The loop is about to enter ``train_step`` with ``done`` steps behind it."""
        self._flush()
        with plain_torch():
            if not self._entered:
                self._entered = True
                self._append(Moment(done, Phase.ENTRY))
            else:
                self._append(Moment(done))
        self._step = done + 1
        self._batch, self._micro_batch = [], 0

    def before_update(self) -> None:
        """Gradients are reduced and the update is about to begin."""
        self._flush()
        with plain_torch():
            for group in (Group.GRADIENTS, Group.GATHERED_PARAMETERS):
                self._capture(Moment(self._step), group, self.state.leaves(group))
                self._prove(group, lambda group=group: self.state.leaves(group))  # type: ignore[misc]

    def after_step(self, losses: Mapping[str, Tensor], skipped: bool, gradient_norm: Any) -> None:
        """``train_step`` has returned; Megatron's logging, which reduces and clears its trackers, has not begun."""
        assert self._metrics is not None
        with plain_torch():
            self._step_metrics = self._metrics.take(losses, skipped, gradient_norm)
            if self._batch:
                batch = self._batch
                self._capture(Moment(self._step), Group.BATCH, batch)
                self._prove(Group.BATCH, lambda: list(batch))

    def on_save(self, checkpoint: Mapping[str, Any]) -> None:
        """A checkpoint is about to be written."""
        with plain_torch():
            self.coverage.check_checkpoint(checkpoint, self.state, self.digester)
        self.request.write_coverage(self.rank, self.coverage.report()["unmapped"])

    def on_end(self) -> None:
        """The loop has ended: the last step's state, the proofs, and the end record."""
        self._flush()
        with plain_torch():
            moment = Moment(self._step)
            self._append(moment, last=True)
            self.coverage.check_state(self.state, self.digester)
        self.writer.close(
            {
                "digest": self.digester.described,
                "known_answers": check_known_answers(self.digester.answer),
                "flips": self._flips,
                "coverage": self.coverage.report(),
                "layout": megatron_internals.coordinates(),
            }
        )

    def _capture(self, moment: Moment, group: Group, leaves: list[Leaf]) -> None:
        self._records[group] = self.digester.capture(group, leaves)
        self.samples.hand_over(moment, group, leaves, self.digester)

    def _append(self, moment: Moment, last: bool = False) -> None:
        """Read the persistent groups, and write the moment with what the step left behind."""
        for group in PERSISTENT_GROUPS:
            self._capture(moment, group, self.state.leaves(group))
        self.digester.send()
        self._pending = moment, dict(self._records), self._step_metrics
        if last or not self.digester.defers:
            self._flush()
        if last:
            for group in PERSISTENT_GROUPS:
                self._prove(group, lambda group=group: self.state.leaves(group))  # type: ignore[misc]
            self._prove_metrics()
        self._records, self._step_metrics = {}, {}

    def _flush(self) -> None:
        """Write the moment whose digests were still on their way."""
        if self._pending is not None:
            moment, captured, metrics = self._pending
            self._pending = None
            self.writer.append(moment, {group: record() for group, record in captured.items()}, metrics)

    def _prove(self, group: Group, collect: Any) -> None:
        """At the last step, flip one bit of the group and see its fingerprint change."""
        if self.request.flips is None or self._step != self.request.steps:
            return
        seed = self.request.flips ^ (len(self._flips) * 0x9E3779B1)
        proof = flip_and_restore(
            group, seed, collect, lambda leaves: self.digester.record(group, leaves), self._records[group]()
        )
        if proof:
            self._flips[group] = proof

    def _prove_metrics(self) -> None:
        if self.request.flips is None:
            return
        table = metric_table(self._step_metrics)
        before = metric_record(self._step_metrics, table, self.digester.algorithm)
        names = list(self._step_metrics)
        name = names[self.request.flips % len(names)]
        metric = self._step_metrics[name]
        width = 4 * len(metric.bits)
        flipped = Metric(
            metric.dtype, f"{int(metric.bits, 16) ^ (1 << (self.request.flips // 7 % width)):0{len(metric.bits)}x}"
        )
        after = metric_record({**self._step_metrics, name: flipped}, table, self.digester.algorithm)
        self._flips[Group.METRICS] = {
            "leaf": name,
            "before": before.digest.hex(),
            "after": after.digest.hex(),
            "restored": metric_record(self._step_metrics, table, self.digester.algorithm).digest.hex(),
        }


def _digester(request: LaunchRequest) -> Digester:
    """The digester of this launch. Raises ``LaunchError`` where none can be trusted on this rank's GPU.

    ``--switch digest=pytorch`` takes the one for GPUs without its kernel, on any device.
    """
    wanted = request.switches.get("digest")
    if wanted not in {None, "pytorch"}:
        raise LaunchError(f"there is no digest {wanted!r}; --switch digest= takes pytorch.")
    if request.device != "cuda" and wanted is None:
        return Digester()
    import torch

    from validator.workload.cuda.digester import DeviceDigester
    from validator.workload.cuda.implementation import Implementation
    from validator.workload.cuda.plain import PlainLanes

    device = torch.device("cpu")
    if request.device == "cuda":
        if not torch.cuda.is_available():
            raise LaunchError("PyTorch finds no CUDA device in this launch, and computation.device is cuda.")
        # As Megatron will do itself a little later: each rank of a node has the GPU of its local rank.
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
        device = torch.device("cuda", torch.cuda.current_device())
    return DeviceDigester(device, Implementation(PlainLanes(), "--switch digest=pytorch") if wanted else None)
