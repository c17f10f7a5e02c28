"""The whole Megatron command line of a launch: the pipeline's own arguments, then those that the product sets.

Checked against ``megatron/training`` of megatron-core 0.19.2 (``arguments.py``, ``checkpointing.py``, ``training.py``).
"""

from __future__ import annotations

from pathlib import Path

from validator.check.plan import LaunchPlan
from validator.execute.request import corpus_prefix
from validator.execute.untrusted import read_small
from validator.pipeline import Computation, Corpus, Device, SaveMode

#: Megatron writes the step of the newest complete checkpoint into this file of the save folder, last of all.
TRACKER = "latest_checkpointed_iteration.txt"


def launch_arguments(
    computation: Computation, plan: LaunchPlan, scratch: Path, checkpoints: Path | None, load: Path | None
) -> list[str]:
    """Arguments for one launch. ``checkpoints`` is where it saves, ``load`` where it restores from."""
    return [
        *computation.arguments,
        *_training(computation, scratch),
        *_saving(plan, checkpoints),
        *_loading(plan, load),
    ]


def _training(computation: Computation, scratch: Path) -> list[str]:
    data = corpus_prefix(scratch) if isinstance(computation.data, Corpus) else computation.data.prefix.resolve()
    return [
        "--train-iters", str(computation.steps),
        "--seed", str(computation.seed),
        "--deterministic-mode",
        "--distributed-backend", "gloo" if computation.device is Device.CPU else "nccl",
        "--rerun-mode", "disabled",
        "--log-interval", "1",
        "--data-path", str(data),
        "--data-cache-path", str(scratch / "data_cache"),
        "--split", "100,0,0",
        "--eval-iters", "0",
        "--eval-interval", str(computation.steps + 1),
    ]  # fmt: skip


def _saving(plan: LaunchPlan, checkpoints: Path | None) -> list[str]:
    if plan.save is None or checkpoints is None:
        return []
    # Megatron saves at every multiple of the interval; the launch is killed before the second one.
    arguments = ["--save", str(checkpoints), "--save-interval", str(plan.save.step)]
    if plan.save.mode is SaveMode.ASYNCHRONOUS:
        # Without a persistent worker 0.19.2 quietly saves synchronously; its default strategy needs one more package.
        arguments += ["--async-save", "--use-persistent-ckpt-worker", "--async-strategy", "mcore"]
    return arguments


def _loading(plan: LaunchPlan, load: Path | None) -> list[str]:
    if not plan.restore or load is None:
        return []
    # Without the last one Megatron starts from random weights where the checkpoint is missing.
    return ["--load", str(load), "--ckpt-step", str(plan.restore), "--exit-on-missing-checkpoint"]


def saved_step(checkpoints: Path) -> int:
    """The newest step whose checkpoint is complete under ``checkpoints``; 0 where there is none yet."""
    told = read_small(checkpoints / TRACKER, 64)  # of code under test: it may be a link, or anything
    return int(told) if told is not None and told.strip().isdigit() else 0


def launch_variables(computation: Computation) -> dict[str, str]:
    """Variables that every launch of this computation gets; the pipeline's own come on top.

    One thread a rank, so that no sum depends on the number of cores; loopback where the ranks are on one machine. On
    CPU nothing is compiled, and Megatron's tensor parallelism asserts the last one although there is no CUDA.
    """
    variables = {"OMP_NUM_THREADS": "1"} | ({"GLOO_SOCKET_IFNAME": "lo"} if computation.nodes == 1 else {})
    if computation.device is Device.CPU:
        variables |= {"TORCHDYNAMO_DISABLE": "1", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    return {**variables, **computation.variables}
