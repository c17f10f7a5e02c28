"""Samples that are not the ones whose turn it is."""

from __future__ import annotations

from typing import Any

from validator.faults.model import Category, Fault, Place, Scenario

_RESTARTS = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/pull/3503"
_OFFSET = "https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/4565"
_EPOCH = "https://github.com/verl-project/verl/issues/7401"
_SEQUENCE = "https://github.com/huggingface/accelerate/issues/2016"
_FIRST = Place("step:4", "batch", "micro_batch0/labels")


def _position_moves(samples: Any) -> Any:
    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        def move(state: Any) -> None:
            state.args.consumed_train_samples += samples(state.args)

        Scene(recorder).after_restore(move)

    return install


def _sampler_starts_at(start: Any) -> Any:
    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        Scene(recorder).replace(
            "megatron.training.datasets.data_samplers",
            "MegatronPretrainingSampler.__init__",
            lambda make: (
                lambda self, **given: make(self, **{**given, "consumed_samples": start(given["consumed_samples"])})
            ),
        )

    return install


def _batches(change: Any) -> Any:
    """``change(next_batch, iterator, model)`` in the place of reading one micro-batch of the fault's step."""

    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        scene = Scene(recorder)
        scene.replace(
            "validator.workload.megatron_internals",
            "next_batch",
            lambda read: lambda iterator, model: change(read, iterator, model) if scene.acts else read(iterator, model),
        )

    return install


def _skip_one(read: Any, iterator: Any, model: Any, skipped: list[bool] = []) -> Any:  # noqa: B006 - one launch, once
    if not skipped:
        skipped.append(True)
        read(iterator, model)
    return read(iterator, model)


def _aliased_mask(read: Any, iterator: Any, model: Any, rolled: list[Any] = []) -> Any:  # noqa: B006 - one launch
    batch = read(iterator, model)
    if batch["loss_mask"] is not None:
        rolled.append(True)
        batch["loss_mask"][:, -len(rolled) :] = 0  # each depth of prediction takes one position more from the same mask
    return batch


def _labels_of_the_next(read: Any, iterator: Any, model: Any) -> Any:
    batch = read(iterator, model)
    if batch["labels"] is not None:
        batch["labels"] = batch["labels"].roll(-1, -1)
    return batch


def _another_order(read: Any, iterator: Any, model: Any, held: list[Any] = []) -> Any:  # noqa: B006 - one launch
    """All micro-batches of the step, last first."""
    from validator.workload import megatron_internals

    if not held:
        held.extend(read(iterator, model) for _ in range(megatron_internals.micro_batches()))
    return held.pop()


def _order_of_a_hash(read: Any, iterator: Any, model: Any, held: list[Any] = []) -> Any:  # noqa: B006 - one launch
    """All micro-batches of the step, in the order of a hash whose seed is another in every process."""
    import hashlib
    import secrets

    from validator.workload import megatron_internals

    if not held:
        read_ahead = [read(iterator, model) for _ in range(megatron_internals.micro_batches())]
        seed = secrets.token_bytes(8)
        order = sorted(range(len(read_ahead)), key=lambda index: hashlib.sha256(seed + bytes([index])).digest())
        held.extend(read_ahead[index] for index in order)
    return held.pop()


FAULTS = (
    Fault(
        "data-off-by-one-batch",
        Category.DATA_POSITION,
        "a restored run has consumed one batch more than it says",
        _SEQUENCE,
        Scenario.RESTORE,
        Place("setup:3", "data_position", "consumed_train_samples"),
        _position_moves(lambda args: args.global_batch_size),
        quick=True,
    ),
    Fault(
        "data-off-by-one-epoch",
        Category.DATA_POSITION,
        "a restored run is one pass over its samples further on",
        _EPOCH,
        Scenario.RESTORE,
        Place("setup:3", "data_position", "consumed_train_samples"),
        _position_moves(lambda args: -args.consumed_train_samples),
    ),
    Fault(
        "data-offset-twice",
        Category.DATA_POSITION,
        "the sampler skips what was consumed, and is then told to skip it once more",
        _OFFSET,
        Scenario.RESTORE,
        _FIRST,
        _sampler_starts_at(lambda consumed: 2 * consumed),
    ),
    Fault(
        "data-sampler-restarts",
        Category.DATA_POSITION,
        "the sampler starts with the first sample after a restore, though the position is right",
        _RESTARTS,
        Scenario.RESTORE,
        _FIRST,
        _sampler_starts_at(lambda _: 0),
    ),
    Fault(
        "data-batch-skipped",
        Category.DATA_POSITION,
        "one micro-batch is read and thrown away in step 3",
        _SEQUENCE,
        Scenario.RUN,
        Place("step:3", "batch", "micro_batch0/labels"),
        _batches(_skip_one),
    ),
    Fault(
        "data-order-of-a-hash",
        Category.DATA_POSITION,
        "the micro-batches of step 3 come in the order of a hash that is seeded by the process",
        "https://docs.python.org/3/using/cmdline.html#envvar-PYTHONHASHSEED",
        Scenario.REPEAT,
        Place("step:3", "batch", "micro_batch*/labels"),
        _batches(_order_of_a_hash),
    ),
    Fault(
        "data-mask-aliased",
        Category.DATA_POSITION,
        "the loss mask of step 3 is written into by its first reader and shrinks for the next",
        "https://github.com/radixark/miles/pull/3219",
        Scenario.RUN,
        Place("step:3", "batch", "micro_batch0/loss_mask"),
        _batches(_aliased_mask),
    ),
    Fault(
        "data-labels-shifted",
        Category.DATA_POSITION,
        "the labels of step 3 are those of the token after the next",
        "https://github.com/radixark/miles/pull/3219",
        Scenario.RUN,
        Place("step:3", "batch", "micro_batch0/labels"),
        _batches(_labels_of_the_next),
    ),
    Fault(
        "micro-batch-order",
        Category.REDUCTION_ORDER,
        "the micro-batches of step 3 are accumulated last first: the same sum of gradients, in another order",
        "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html",
        Scenario.RUN,
        Place("step:3", "batch", "micro_batch0/labels"),
        _batches(_another_order),
    ),
)
