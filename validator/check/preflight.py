"""Refuses, before anything starts, what cannot be deterministic.

The accepted values are those of ``megatron/training/determinism.py`` (megatron-core 0.19.2), which asserts them inside
the launch: here a person is told at once, and by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from validator.environment import Host
from validator.errors import UsageError
from validator.execute.gpu_packages import without_determinism
from validator.pipeline import Computation, Device, Spec, TokenFiles

#: Tokens that a comma-separated ``NCCL_ALGO`` may hold.
NCCL_ALGORITHMS = ("Ring", "CollnetDirect", "CollnetChain", "^NVLS")

#: Variables that, where they are set, must have one of a few values.
ACCEPTED_VALUES = {
    "NVTE_ALLOW_NONDETERMINISTIC_ALGO": ("0",),
    "CUBLAS_WORKSPACE_CONFIG": (":4096:8", ":16:8"),
}

#: Variables whose libraries follow PyTorch's deterministic mode where they are unset: mamba-ssm's and causal-conv1d's.
#: Megatron asserts the first; the second would be passed over.
FOLLOWERS = ("MAMBA_DETERMINISTIC", "CAUSAL_CONV1D_DETERMINISTIC")


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
    for name in FOLLOWERS:
        value = variables.get(name)
        if value and not value.startswith("1"):
            _refuse(name, value, "a value that begins with 1, or none", source)


#: Arguments that deterministic mode refuses (``ARG_VALUES_REQUIRED_FOR_DETERMINISM``): the fused loss is not
#: deterministic, and overlapped tensor-parallel communication has no fixed order.
REFUSED_ARGUMENTS = ("--cross-entropy-loss-fusion", "--tp-comm-overlap")

#: Numbers of 8 and 4 bits by the least compute capability of a GPU that multiplies them, as Transformer Engine checks
#: it (``transformer_engine/pytorch/quantization.py``): Ada 8.9, Hopper 9.0, Blackwell 10.0.
_RECIPES = {
    "delayed": (8, 9), "tensorwise": (8, 9), "blockwise": (9, 0), "mxfp8": (10, 0), "nvfp4": (10, 0),
}  # fmt: skip


def check_arguments(computation: Computation) -> None:
    """Raise ``UsageError`` for Megatron's arguments that deterministic mode refuses."""
    for word in computation.arguments:
        if word.partition("=")[0] in REFUSED_ARGUMENTS:
            raise UsageError(
                f"{word} rules out determinism, and deterministic mode refuses it; remove it from "
                "computation.arguments (a default arm of the overhead may have it)."
            )


def check_precision(computation: Computation, host: Host) -> None:
    """Raise ``UsageError`` where the computation asks for numbers of 8 or 4 bits that the device cannot multiply."""
    recipe = _low_precision(computation.arguments)
    if recipe is None:
        return
    if computation.device is not Device.CUDA:
        raise UsageError(f"{_NAMES[recipe]} needs a GPU, and computation.device is {computation.device}; remove it.")
    for gpu in host.gpus:
        capability = tuple(int(part) for part in gpu.capability.split(".") if part.isdigit())
        if capability < _RECIPES[recipe]:
            able = [name for name, least in _RECIPES.items() if least <= capability]
            wanted = ".".join(map(str, _RECIPES[recipe]))
            fp8 = f" and FP8 with {' or '.join(able)} scaling" if able else ""
            raise UsageError(
                f"{_NAMES[recipe]} needs compute capability {wanted} or newer, and {gpu.name} has {gpu.capability}; "
                f"accepted there: bf16{fp8}; change computation.arguments."
            )


_NAMES = {
    "delayed": "FP8 with delayed scaling", "tensorwise": "FP8 with tensorwise scaling",
    "blockwise": "FP8 with blockwise scaling", "mxfp8": "MXFP8", "nvfp4": "NVFP4",
}  # fmt: skip


def _low_precision(words: Sequence[str]) -> str | None:
    """The recipe that the arguments ask for, ``None`` where they ask for none that is known."""
    given: dict[str, str] = {}
    for index, word in enumerate(words):
        name, separator, value = word.partition("=")
        if name in {"--fp8-format", "--fp8-recipe", "--fp4-format", "--fp4-recipe"}:
            given[name] = value if separator else (words[index + 1] if index + 1 < len(words) else "")
    if "--fp4-format" in given:
        recipe = given.get("--fp4-recipe", "nvfp4")
    elif "--fp8-format" in given:
        recipe = given.get("--fp8-recipe", "delayed")
    else:
        return None
    return recipe if recipe in _RECIPES else None


def check_packages(computation: Computation, packages: Mapping[str, str | None]) -> None:
    """Raise ``UsageError`` for a package whose backward pass is not deterministic in this version.

    ``packages`` are those of the launch's interpreter, by distribution; ``None`` for one that is not installed. On the
    CPU, and with the reference layers, none of them computes.
    """
    if computation.device is not Device.CUDA or computation.spec is not Spec.MEGATRON:
        return
    wrong = without_determinism(packages)
    if wrong:
        raise UsageError(wrong)


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
