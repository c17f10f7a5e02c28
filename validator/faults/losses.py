"""Losses and norms that are wrong, for training or only in the log."""

from __future__ import annotations

from typing import Any

from validator.faults.model import Category, Fault, Place, Scenario

_AUX_TWICE = "https://github.com/NVIDIA/Megatron-LM/issues/1330"
_MTP_SCALE = "https://github.com/NVIDIA/Megatron-LM/issues/2417"
_MTP_LABELS = "https://github.com/radixark/miles/pull/3219"
_NORM = "https://github.com/NVIDIA/Megatron-LM/issues/7131"
_MTP = "megatron.core.transformer.multi_token_prediction"


def _aux_loss_twice(recorder: Any) -> None:
    from validator.faults.act import Scene

    scene = Scene(recorder)

    def record(original: Any) -> Any:
        def twice(tracker: Any, *args: Any, **kwargs: Any) -> Any:
            if scene.acts:
                original(tracker, *args, **kwargs)
            return original(tracker, *args, **kwargs)

        return twice

    scene.replace("megatron.core.transformer.moe.moe_logging", "MoEMetricsTracker.record", record)


def _aux_coefficient(recorder: Any) -> None:
    from validator.faults.act import Scene

    scene = Scene(recorder)
    scene.replace(
        "megatron.core.transformer.moe.moe_utils",
        "MoEAuxLossAutoScaler.apply",
        lambda apply: lambda activation, loss: apply(activation, 2 * loss if scene.acts else loss),
    )


def _mtp_scale(recorder: Any) -> None:
    from validator.faults.act import Scene

    scene = Scene(recorder)
    scene.replace(
        _MTP,
        "MTPLossAutoScaler.apply",
        lambda apply: lambda hidden, loss: apply(hidden, 2 * loss if scene.acts else loss),
    )


def _mtp_labels(recorder: Any) -> None:
    from validator.faults.act import Scene

    scene = Scene(recorder)
    scene.replace(
        "megatron.core.models.hybrid.hybrid_model",
        "process_mtp_loss",
        lambda process: (
            lambda *args, labels, **kwargs: process(
                *args, labels=labels.roll(-1, -1) if scene.acts else labels, **kwargs
            )
        ),
    )


def _stale_norm(recorder: Any) -> None:
    """Report the norm of the step before. Training clips by the right one."""
    from validator.faults.act import Scene
    from validator.workload import megatron_internals

    scene = Scene(recorder)
    last: list[Any] = []

    def setup(_: Any, optimizer: Any, *__: Any) -> None:
        step = optimizer.step

        def stale(*args: Any, **kwargs: Any) -> Any:
            done, norm, *rest = step(*args, **kwargs)
            last.append(norm)
            return (done, last[-2] if scene.acts else norm, *rest)

        optimizer.step = stale

    megatron_internals.observe_training(megatron_internals.Hooks(on_setup=setup))


def _norm_of_a_stale_buffer(recorder: Any) -> None:
    """Clip by a norm that was computed before the gradients were complete."""
    from validator.faults.act import Scene

    scene = Scene(recorder)
    scene.replace(
        "megatron.core.optimizer.optimizer",
        "clip_grad_by_total_norm_fp32",
        lambda clip: (
            lambda parameters, max_norm, total_norm, *args, **kwargs: clip(
                parameters, max_norm, 4 * total_norm if scene.acts else total_norm, *args, **kwargs
            )
        ),
    )


FAULTS = (
    Fault(
        "aux-loss-recorded-twice",
        Category.LOSSES,
        "recomputation records the load-balancing loss of step 3 twice; training is not touched",
        _AUX_TWICE,
        Scenario.RUN,
        Place("step:3", "metrics", "seq_load_balancing_loss.layer2"),
        _aux_loss_twice,
        logged_only=True,
        quick=True,
    ),
    Fault(
        "aux-loss-trained-twice",
        Category.LOSSES,
        "the load-balancing loss of step 3 weighs twice in the gradients, and the log is right",
        _AUX_TWICE,
        Scenario.RUN,
        Place("step:3", "gradients", "*"),
        _aux_coefficient,
    ),
    Fault(
        "mtp-labels-shifted",
        Category.LOSSES,
        "the labels of every depth of multi-token prediction are one token further on in step 3",
        _MTP_LABELS,
        Scenario.RUN,
        Place("step:3", "metrics", "mtp_loss.1"),
        _mtp_labels,
    ),
    Fault(
        "mtp-loss-scaled",
        Category.LOSSES,
        "the multi-token-prediction losses of step 3 weigh twice in the gradients, and the log is right",
        _MTP_SCALE,
        Scenario.RUN,
        Place("step:3", "gradients", "output_layer.weight"),
        _mtp_scale,
    ),
    Fault(
        "gradient-norm-of-the-step-before",
        Category.LOSSES,
        "the gradient norm that is logged for step 3 is that of step 2; training is not touched",
        _NORM,
        Scenario.RUN,
        Place("step:3", "metrics", "grad_norm"),
        _stale_norm,
        logged_only=True,
    ),
    Fault(
        "gradients-clipped-by-a-stale-norm",
        Category.LOSSES,
        "step 3 clips its gradients by a norm over a buffer that is not complete",
        "https://github.com/NVIDIA/Megatron-LM/pull/4609",
        Scenario.RUN,
        Place("step:3", "optimizer", "output_layer.weight/exp_avg"),
        _norm_of_a_stale_buffer,
    ),
)
