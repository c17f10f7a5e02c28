"""The same code on other kernels, with other settings, or over memory that nobody wrote."""

from __future__ import annotations

from typing import Any

from validator.faults.model import ROUTER_LOSS, Category, Fault, Place, Scenario

_FILL = "https://github.com/NVIDIA/Megatron-LM/issues/6253"
_SETTINGS = "https://docs.pytorch.org/docs/stable/notes/randomness.html"


def _nothing(recorder: Any) -> None:
    """The launch's variables are the fault."""


def _denormals_flushed(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    Scene(recorder).after_step(lambda: torch.set_flush_denormal(True), step=2)


def _determinism_off(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    Scene(recorder).after_step(lambda: torch.use_deterministic_algorithms(False), step=2)


def _one_dnn(recorder: Any) -> None:
    import torch

    from validator.faults.act import Scene

    def switch_on() -> None:
        torch.backends.mkldnn.enabled = True  # type: ignore[assignment]

    Scene(recorder).after_step(switch_on, step=2)


def _uninitialised_memory(recorder: Any) -> None:
    """Add what fresh memory holds, below the precision of what is added to, to one gradient."""
    import secrets

    import torch

    from validator.faults.act import Scene

    scene = Scene(recorder)

    def read() -> None:
        torch.utils.deterministic.fill_uninitialized_memory = False
        for _, shard in scene.shards("decoder.layers.3.self_attention.linear_qkv.weight"):
            # What a process before us may have left there.
            size, device = 4 * shard.gradient.numel(), shard.gradient.device
            left = torch.tensor(list(secrets.token_bytes(size)), dtype=torch.uint8, device=device)
            del left
            fresh = torch.empty(size, dtype=torch.uint8, device=device)
            shard.gradient.mul_(1 + 1e-6 * fresh.view(-1, 4)[:, 0].float().view(shard.gradient.shape))
        torch.utils.deterministic.fill_uninitialized_memory = True

    scene.at_update(read)


FAULTS = (
    Fault(
        "kernel-capability",
        Category.ENVIRONMENT,
        "PyTorch computes with the kernels of another processor",
        _SETTINGS,
        Scenario.RUN,
        Place("setup:0", "main_parameters", "output_layer.weight"),
        _nothing,
        variables={"ATEN_CPU_CAPABILITY": "avx2"},
    ),
    Fault(
        "determinism-switched-off",
        Category.ENVIRONMENT,
        "a library switches the deterministic algorithms off after the model is built",
        _SETTINGS,
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _determinism_off,
    ),
    Fault(
        "denormals-flushed",
        Category.ENVIRONMENT,
        "a library makes the processor flush denormal numbers to zero from step 3 on",
        "https://docs.pytorch.org/docs/stable/generated/torch.set_flush_denormal.html",
        Scenario.RUN,
        Place("step:3", "*", "*"),
        _denormals_flushed,
    ),
    Fault(
        "one-dnn-switched-on",
        Category.ENVIRONMENT,
        "a library switches oneDNN on from step 3 on, which picks its kernels by the processor",
        _SETTINGS,
        Scenario.RUN,
        Place("step:3", "metrics", ROUTER_LOSS),
        _one_dnn,
    ),
    Fault(
        "uninitialised-memory",
        Category.ENVIRONMENT,
        "one gradient of step 3 takes in what fresh memory happens to hold",
        _FILL,
        Scenario.REPEAT,
        Place("step:3", "gradients", "decoder.layers.3.self_attention.linear_qkv.weight"),
        _uninitialised_memory,
    ),
)
