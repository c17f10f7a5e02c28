"""One rank of one launch, from the request to the end of training."""

from __future__ import annotations

import importlib
import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import validator
from validator.errors import LaunchError
from validator.execute.gpu_packages import DETERMINISTIC_SINCE, without_determinism
from validator.execute.plugin import FOLDER as PLUGIN_FOLDER
from validator.execute.request import LaunchRequest

_SPECS = {
    "reference": ("validator.workload.reference_spec", "reference_stack_spec"),
    "megatron": ("megatron.core.models.hybrid.hybrid_layer_specs", "hybrid_stack_spec"),
}

#: Tells processes that Megatron starts which device they are on.
_DEVICE_VARIABLE = "VALIDATOR_DEVICE"


def run(request: LaunchRequest) -> None:
    """Train as ``request`` says, and record if it says so."""
    on_device = prepare_device(request.device)
    if request.device != "cpu" and request.spec == "reference":
        from validator.workload.cpu import mamba_ssm_modules

        mamba_ssm_modules.install()  # plain PyTorch also where mamba-ssm is installed
    _apply_settings(request)
    _refuse_packages(request)

    from validator.workload import megatron_internals

    sys.argv = ["workload", *request.arguments, "--spec", *_SPECS[request.spec]]
    megatron_internals.prepare(request.device, on_device, request.spec)
    args = megatron_internals.parse_arguments()
    _prepare_corpus(request)

    importlib.import_module(_SPECS[request.spec][0])  # Megatron would pass over what it lacks
    from validator.workload import data, step

    if request.record:
        _record(request, args)
    elif request.measure is not None:
        _measure(request, args)
    with _plugged(request, args):
        megatron_internals.pretrain(args, data.datasets_provider, step.forward_step)


def _plugged(request: LaunchRequest, args: Any) -> AbstractContextManager[None]:
    """The kit's plugin, installed; nothing where there is none."""
    files = sorted((Path(str(validator.__file__)).parent.parent / PLUGIN_FOLDER).glob("*"))
    if not files:
        return nullcontext()
    from validator.workload import plugins

    return plugins.applied(files[0], request, args)


def prepare_device(device: str | None) -> Any:
    """Put the CPU in the device's place where the launch runs on the CPU; ``None`` asks what the parent process was
    told.

    Returns the context in which PyTorch's default generator is the device's, or ``None`` on a real device.
    """
    if device is None:
        device = os.environ.get(_DEVICE_VARIABLE)
    else:
        os.environ[_DEVICE_VARIABLE] = device
    if device != "cpu":
        return None

    import torch

    from validator.workload import cpu
    from validator.workload.cpu import generators

    cpu.install()
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # type: ignore[assignment]
    return generators.on_device


def _apply_settings(request: LaunchRequest) -> None:
    """Set what the host asks for beyond what the device's preparation has set."""
    import torch

    if "mkldnn" in request.settings:
        torch.backends.mkldnn.enabled = bool(request.settings["mkldnn"])  # type: ignore[assignment]
    if "fill_uninitialized_memory" in request.settings:
        torch.utils.deterministic.fill_uninitialized_memory = bool(request.settings["fill_uninitialized_memory"])


def _refuse_packages(request: LaunchRequest) -> None:
    """Raise ``LaunchError`` for a package whose backward pass cannot be deterministic: in an image or on a cluster only
    the launch sees what is installed.
    """
    if request.device != "cuda" or request.spec != "megatron":
        return
    versions: dict[str, str | None] = {}
    for name in DETERMINISTIC_SINCE:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    wrong = without_determinism(versions)
    if wrong:
        raise LaunchError(wrong)


def _measure(request: LaunchRequest, args: Any) -> None:
    """Put a clock, or PyTorch's profiler, around the steps; nothing else."""
    from validator.workload import profile, timing

    install = profile.install if request.measure == "profile" else timing.install
    install(request, args, int(os.environ["RANK"]))


def _record(request: LaunchRequest, args: Any) -> None:
    """Put the recorder between Megatron's training loop and its functions."""
    from validator.workload import claims, megatron_internals, step
    from validator.workload.recorder import Recorder

    rank = int(os.environ["RANK"])
    recorder = Recorder(request, rank)
    step.observe(recorder.on_batch, recorder.on_loss)
    megatron_internals.observe_training(recorder.hooks())
    if rank == 0:
        # Once the model is built, every package that takes part is loaded.
        megatron_internals.observe_training(megatron_internals.Hooks(on_setup=lambda *_: claims.write(request, args)))
    megatron_internals.observe_checkpoints(recorder.on_save)
    if request.trace is not None:  # before what changes anything, and within it
        from validator.workload import trace

        trace.install(request, rank)
    fault = request.switches.get("fault")
    if fault or request.switches.get("witness"):
        from validator import faults
        from validator.faults.witness import Witness

        Witness(recorder)  # before the fault, so that it sees what the fault changes at the same moment
        if fault:
            faults.install(str(fault), recorder)


def _prepare_corpus(request: LaunchRequest) -> None:
    """Let rank 0 generate the corpus; the others wait for its last file to appear."""
    if request.corpus is None:
        return
    from validator.workload import data

    prefix = request.corpus_prefix
    ready = prefix.with_name(prefix.name + ".ready")
    if os.environ["RANK"] == "0" and not ready.exists():
        data.write_corpus(request.corpus, prefix)
        ready.touch()
    while not ready.exists():
        time.sleep(0.02)
