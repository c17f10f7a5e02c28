"""Optimizer state that is lost, rounded, or not used."""

from __future__ import annotations

from typing import Any

from validator.faults.model import Category, Fault, Place, Scenario

_RESTORE = "https://github.com/thinking-machines-lab/tinker-feedback/issues/127"
_PRECISION = "https://github.com/TensorAuto/OpenTau/issues/184"
_FORMULA = "https://github.com/KempnerInstitute/KempnerForge/issues/114"


def _inner(recorder_state: Any) -> Any:
    from validator.workload import megatron_internals

    return [one.optimizer for one in megatron_internals.inner_optimizers(recorder_state.optimizer)]


def _restored(change: Any) -> Any:
    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        Scene(recorder).after_restore(change)

    return install


def _step_lost(state: Any) -> None:
    for optimizer in _inner(state):
        for group in optimizer.param_groups:
            group["step"] = 0


def _decay_lost(state: Any) -> None:
    for optimizer in _inner(state):
        for group in optimizer.param_groups:
            group["wd_mult"] = 0.0


def _scheduler_lost(state: Any) -> None:
    state.scheduler.num_steps = 0


def _second_moment_bf16(state: Any) -> None:
    from validator.faults.act import through_bf16

    for _, shard in state.shards():
        through_bf16(shard.state["exp_avg_sq"])


def _moments_lost(state: Any) -> None:
    for _, shard in state.shards():
        shard.state["exp_avg"].zero_()


def _main_from_bf16(state: Any) -> None:
    for _, shard in state.shards():
        shard.main.copy_(shard.shard)


def _first_moment_bf16(recorder: Any) -> None:
    from validator.faults.act import Scene, through_bf16

    scene = Scene(recorder)

    def round_all() -> None:
        for _, shard in scene.shards():
            through_bf16(shard.state["exp_avg"])

    scene.after_step(round_all)


def _around_the_update(change: Any) -> Any:
    """``change(group, step)`` in the place of one inner optimizer's update of the fault's step."""

    def install(recorder: Any) -> None:
        from validator.faults.act import Scene

        scene = Scene(recorder)
        scene.replace(
            "validator.workload.adam",
            "Adam.step",
            lambda step: (
                lambda self, *args, **kwargs: (
                    change(self, lambda: step(self, *args, **kwargs)) if scene.acts else step(self, *args, **kwargs)
                )
            ),
        )

    return install


def _group_skipped(optimizer: Any, update: Any) -> None:
    groups = optimizer.param_groups
    optimizer.param_groups = groups[1:]
    update()
    optimizer.param_groups = groups


def _no_bias_correction(optimizer: Any, update: Any) -> None:
    learning_rates = [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        first, _ = group["betas"]
        group["lr"] *= 1 - first ** (group["step"] + 1)
    update()
    for group, rate in zip(optimizer.param_groups, learning_rates, strict=True):
        group["lr"] = rate


def _epsilon_larger(optimizer: Any, update: Any) -> None:
    for group in optimizer.param_groups:
        group["eps"] *= 10
    update()
    for group in optimizer.param_groups:
        group["eps"] /= 10


_FIRST_MOMENT = "output_layer.weight/exp_avg"

FAULTS = (
    Fault(
        "optimizer-step-lost",
        Category.OPTIMIZER,
        "the optimizer counts its steps from 0 after a restore: the bias correction is that of step 1",
        _RESTORE,
        Scenario.RESTORE,
        Place("setup:3", "optimizer", "optimizer*.group*/step"),
        _restored(_step_lost),
        quick=True,
    ),
    Fault(
        "optimizer-moments-lost",
        Category.OPTIMIZER,
        "the first moments are zero after a restore",
        _RESTORE,
        Scenario.RESTORE,
        Place("setup:3", "optimizer", _FIRST_MOMENT),
        _restored(_moments_lost),
    ),
    Fault(
        "optimizer-second-moment-bf16",
        Category.OPTIMIZER,
        "the second moments come back rounded to bfloat16",
        _PRECISION,
        Scenario.RESTORE,
        Place("setup:3", "optimizer", f"{_FIRST_MOMENT}_sq"),
        _restored(_second_moment_bf16),
    ),
    Fault(
        "optimizer-first-moment-bf16",
        Category.OPTIMIZER,
        "the first moments are rounded to bfloat16 after step 3",
        _PRECISION,
        Scenario.RUN,
        Place("step:3", "optimizer", _FIRST_MOMENT),
        _first_moment_bf16,
    ),
    Fault(
        "main-parameters-from-bf16",
        Category.OPTIMIZER,
        "the main parameters are rebuilt from the bfloat16 ones after a restore",
        "https://github.com/TensorAuto/OpenTau/issues/185",
        Scenario.RESTORE,
        Place("setup:3", "main_parameters", "output_layer.weight"),
        _restored(_main_from_bf16),
    ),
    Fault(
        "optimizer-group-skipped",
        Category.OPTIMIZER,
        "one parameter group is not updated in step 3",
        _FORMULA,
        Scenario.RUN,
        Place("step:3", "optimizer", _FIRST_MOMENT),
        _around_the_update(_group_skipped),
    ),
    Fault(
        "optimizer-no-bias-correction",
        Category.OPTIMIZER,
        "step 3 updates without the correction of the first moment's bias",
        _FORMULA,
        Scenario.RUN,
        Place("step:3", "main_parameters", "output_layer.weight"),
        _around_the_update(_no_bias_correction),
    ),
    Fault(
        "optimizer-epsilon",
        Category.OPTIMIZER,
        "step 3 updates with an epsilon of 1e-7 in the place of 1e-8",
        _FORMULA,
        Scenario.RUN,
        Place("step:3", "main_parameters", "output_layer.weight"),
        _around_the_update(_epsilon_larger),
    ),
    Fault(
        "scheduler-not-restored",
        Category.OPTIMIZER,
        "the learning-rate scheduler is restored before it is reset: it begins its warm-up again",
        "https://github.com/NVIDIA/Megatron-LM/pull/7468",
        Scenario.RESTORE,
        Place("setup:3", "schedule", "num_steps"),
        _restored(_scheduler_lost),
    ),
    Fault(
        "weight-decay-lost",
        Category.OPTIMIZER,
        "the restored parameter groups have no weight decay",
        _RESTORE,
        Scenario.RESTORE,
        Place("setup:3", "optimizer", "optimizer*.group*/wd_mult"),
        _restored(_decay_lost),
    ),
)
