"""What a launch claims about its own environment: packages, resolved Megatron arguments, variables, PyTorch's
settings.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

import validator
from validator.environment.variables import capture_variables
from validator.execute.request import LaunchRequest
from validator.workload import megatron_internals

#: Resolved arguments that name places, times or this launch's role, and say nothing about the computation.
_NOT_COMPUTATION = frozenset(
    {
        "load",
        "save",
        "save_interval",
        "ckpt_step",
        "async_save",
        "data_path",
        "data_cache_path",
        "rank",
        "local_rank",
        "per_split_data_args_path",
        "tensorboard_dir",
        "iteration",
        "consumed_train_samples",
        "consumed_valid_samples",
        "skipped_train_samples",
        "num_floating_point_operations_so_far",
        "do_train",
        "do_valid",
        "do_test",
        "curr_iteration",
    }
)

#: This project's own package, whose version says nothing about the environment under test.
_OUR_NAME = "megatron-change-validator"

#: Packages of ours or of the machine's management, whose names begin like those of what computes.
_NOT_COMPUTING = frozenset({_OUR_NAME, "nvidia-ml-py"})

#: Packages that decide how PyTorch computes, though no module of theirs is imported.
_ALWAYS = (
    "nvidia-",
    "cuda-",
    "torch",
    "triton",
    "megatron",
    "mkl",
    "intel-",
    "mamba",
    "causal",
    "transformer",
    "flash",
)


def write(request: LaunchRequest, args: Any) -> None:
    """Write ``claims.json`` beside the trajectory, whole or not at all. Rank 0 only."""
    temporary = request.claims_file.with_suffix(".part")
    temporary.write_text(json.dumps(collect(args), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    os.replace(temporary, request.claims_file)


def collect(args: Any) -> dict[str, Any]:
    """All claims, as JSON values."""
    return {
        "python": platform.python_version(),
        "packages": packages(),
        "megatron": {"version": megatron_internals.version(), "commit": megatron_commit()},
        "arguments": {
            name: _plain(value) for name, value in sorted(vars(args).items()) if name not in _NOT_COMPUTATION
        },
        "variables": dict(capture_variables(os.environ)),
        "torch": torch_settings(),
        "workload_digest": workload_digest(),
    }


def torch_settings() -> dict[str, Any]:
    """Settings of PyTorch that can change bits."""
    return {
        "version": torch.__version__,
        "git_version": torch.version.git_version,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.cuda.is_available() else None,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "mkldnn": torch.backends.mkldnn.enabled,
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "fill_uninitialized_memory": torch.utils.deterministic.fill_uninitialized_memory,
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
    }


def megatron_commit() -> str | None:
    """The git commit of the Megatron that is loaded, with ``+dirty`` where files differ from it; ``None`` for a
    wheel.
    """
    core = importlib.import_module("megatron.core")
    folder = Path(str(core.__file__)).parent

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *arguments], cwd=folder, capture_output=True, text=True, timeout=20, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    if git("ls-files", "--error-unmatch", str(core.__file__)) is None:
        return None
    commit = git("rev-parse", "HEAD")
    return f"{commit}+dirty" if commit and git("status", "--porcelain", "--untracked-files=no", ".") else commit


def packages() -> dict[str, str]:
    """Versions of the installed packages that take part: those of imported modules, and those that PyTorch's kernels
    come from.
    """
    imported = {name.partition(".")[0] for name in sys.modules}
    by_module = metadata.packages_distributions()
    taking_part = {name for module in imported for name in by_module.get(module, ())}
    found = {}
    for item in metadata.distributions():
        name = item.metadata["Name"] or ""
        vendored = "_vendor" in Path(str(item.locate_file(""))).parts
        if not vendored and name not in _NOT_COMPUTING and (name in taking_part or name.lower().startswith(_ALWAYS)):
            found.setdefault(name, item.version)  # the first on the path is the one that is imported
    return found


def workload_digest() -> str:
    """SHA-256 over the modules of ours that compute or record in this launch, by relative name and content."""
    root = Path(str(validator.__file__)).parent
    digest = hashlib.sha256()
    parts = tuple(f"{root.name}.{part}" for part in ("workload", "trajectory", "faults"))
    files = {Path(str(module.__file__)) for name, module in sys.modules.items() if name.startswith(parts)}
    for path in sorted(files):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value)
