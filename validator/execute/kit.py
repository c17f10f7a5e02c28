"""What a launch gets from us: links to our package and to xxhash, never an installation, and a clean set of
variables.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import xxhash

import validator
from validator.errors import UsageError
from validator.execute.interpreter import Interpreter
from validator.execute.launch import Surroundings
from validator.execute.plugin import Plugin

#: Variables of the caller that a launch may see: they say where things are, not how to compute.
PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_CACHE_HOME", "SSL_CERT_FILE",
    "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",
)  # fmt: skip

#: Variables that the product sets and nobody else may: they decide which code is loaded and who owns the processes.
OWNED = ("PYTHONPATH", "PYTHONNOUSERSITE", "PYTHONSAFEPATH", "PYTHONUNBUFFERED")


def build_kit(directory: Path, interpreter: Interpreter) -> Path:
    """Make the folder that goes first on a launch's path; returns it.

    It links to this package, and to our xxhash where the interpreter can load it; one of another Python version has to
    bring an xxhash of its own.
    """
    directory.mkdir(parents=True, exist_ok=True)
    packages = {"validator": validator.__file__}
    if interpreter.shares_extensions:
        packages["xxhash"] = xxhash.__file__
    for name, file in packages.items():
        link = directory / name
        if not link.is_symlink():
            link.symlink_to(Path(file).resolve().parent, target_is_directory=True)
    return directory


def surround(
    directory: Path,
    interpreter: Interpreter,
    megatron: Path | None,
    variables: Mapping[str, str],
    changes: Mapping[str, str],
    plugin: Plugin | None = None,
) -> Surroundings:
    """Where the launches of one check run: the pipeline's ``variables`` with the ``--env`` ``changes`` applied, and the
    ``plugin`` in reach.

    Raises ``UsageError`` for a variable that the product owns and for a ``--megatron`` that holds no Megatron.
    """
    for name in (*variables, *changes):
        if name in OWNED:
            raise UsageError(
                f"The variable {name} is set by the product and cannot be changed; use --python or --megatron."
            )
    if megatron is not None:
        megatron = megatron.expanduser().resolve()
        if not (megatron / "megatron" / "core").is_dir():
            raise UsageError(
                f"{megatron} has no folder megatron/core; --megatron takes the root of a Megatron-LM checkout."
            )
    kit = build_kit(directory, interpreter)
    if plugin is not None:
        plugin.put_into(kit)
    return Surroundings(interpreter.path, kit, megatron, {**variables, **changes})


def launch_environment(surroundings: Surroundings, caller: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The whole environment of a launch."""
    path = [str(surroundings.kit)] + ([str(surroundings.megatron)] if surroundings.megatron else [])
    passed = {name: caller[name] for name in PASSED_ON if name in caller}
    return passed | dict(surroundings.variables) | owned_variables(path)


def owned_variables(path: Sequence[str]) -> dict[str, str]:
    """What the product itself sets, with ``path`` first on the interpreter's path."""
    return {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",  # the working directory is never on the path
        "PYTHONUNBUFFERED": "1",  # a killed launch's log ends where the launch did
    }
