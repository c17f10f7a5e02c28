"""Refuses, before anything starts, what cannot be deterministic.

The accepted values are those of ``megatron/training/determinism.py`` (megatron-core 0.19.2), which asserts them inside
the launch: here a person is told at once, and by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from validator.errors import UsageError
from validator.pipeline import Computation, TokenFiles

#: Tokens that a comma-separated ``NCCL_ALGO`` may hold.
NCCL_ALGORITHMS = ("Ring", "CollnetDirect", "CollnetChain", "^NVLS")

#: Variables that, where they are set, must have one of a few values.
ACCEPTED_VALUES = {
    "NVTE_ALLOW_NONDETERMINISTIC_ALGO": ("0",),
    "CUBLAS_WORKSPACE_CONFIG": (":4096:8", ":16:8"),
}


def check_variables(variables: Mapping[str, str], source: Mapping[str, str] | None = None) -> None:
    """Raise ``UsageError`` for the first variable that rules out determinism.

    ``variables`` are those that the launch will get; ``source`` says for a name where it was set (``--env``), the
    pipeline's ``computation.variables`` by default.
    """
    algorithms = variables.get("NCCL_ALGO")
    if algorithms is not None:
        tokens = [token.strip() for token in algorithms.split(",") if token.strip()]
        if not tokens or any(token not in NCCL_ALGORITHMS for token in tokens):
            accepted = f"one or more of {', '.join(NCCL_ALGORITHMS)}, separated by commas"
            _refuse("NCCL_ALGO", algorithms, accepted, source)
    for name, values in ACCEPTED_VALUES.items():
        value = variables.get(name)
        if value is not None and value not in values:
            _refuse(name, value, " or ".join(values), source)
    mamba = variables.get("MAMBA_DETERMINISTIC")
    if mamba and not mamba.startswith("1"):
        _refuse("MAMBA_DETERMINISTIC", mamba, "a value that begins with 1, or none", source)


def check_data(computation: Computation) -> None:
    """Raise ``UsageError`` where the pipeline names token files that are not there."""
    if isinstance(computation.data, TokenFiles):
        for suffix in (".bin", ".idx"):
            file = computation.data.prefix.with_name(computation.data.prefix.name + suffix)
            if not file.is_file():
                raise UsageError(
                    f"{file} is no file; let computation.data.prefix name an existing pair of .bin and .idx."
                )


def _refuse(name: str, value: str, accepted: str, source: Mapping[str, str] | None) -> None:
    place = (source or {}).get(name, "computation.variables of the pipeline")
    raise UsageError(f"{name}={value!r} rules out determinism; accepted is {accepted}: change it in {place}.")
