"""How two environments differ, what can change bits first."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from validator.environment.facts import Environment, Fact, Kind, Origin
from validator.environment.nvml import HARMLESS
from validator.environment.variables import capture_variables, variable_changes_bits


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """One fact that is not what it was, ``None`` where one side lacks it; ``origin`` is the weaker of the two."""

    kind: Kind
    name: str
    expected: str | None
    observed: str | None
    can_change_bits: bool
    origin: Origin


def difference(expected: Environment, observed: Environment) -> list[EnvironmentDifference]:
    """Facts that differ: those that can change bits first, then by kind in ``Kind``'s order, then by name.

    Paths, ports, timings and what a launch is merely told about logging and saving are never in it.
    """
    found = []
    for kind in Kind:
        left, right = expected.facts.get(kind, {}), observed.facts.get(kind, {})
        if kind is Kind.IMAGE and not (left and right):  # one side ran in no image: its content is no change
            left, right = _identity(left), _identity(right)
        for name in sorted(left.keys() | right.keys()):
            before, after = left.get(name), right.get(name)
            if _value(before) != _value(after) and not _is_passed_over(kind, name, before, after):
                origins = {fact.origin for fact in (before, after) if fact is not None}
                origin = Origin.CLAIMED if Origin.CLAIMED in origins else Origin.OBSERVED
                bits = can_change_bits(kind, name)
                found.append(EnvironmentDifference(kind, name, _value(before), _value(after), bits, origin))
    return sorted(found, key=lambda entry: not entry.can_change_bits)


def can_change_bits(kind: Kind, name: str) -> bool:
    """Whether a changed fact of this name may by itself change what is computed."""
    if kind is Kind.VARIABLES:
        return variable_changes_bits(name)
    if kind is Kind.PACKAGES:
        return _COMPUTING_PACKAGES.match(_normalised(name)) is not None
    if kind is Kind.HARDWARE:
        return name not in ("cpus", "memory GiB") and not name.endswith(HARMLESS)
    if kind is Kind.SYSTEM:
        return name != "kernel"
    if kind is Kind.ARGUMENTS:
        return _REPORTING_ARGUMENTS.match(name) is None
    if kind is Kind.IMAGE:
        what, _, own = name.partition(" ")
        if what == "variable":
            return bool(capture_variables({own: ""})) and variable_changes_bits(own)
        return what == "package" and _COMPUTING_SYSTEM_PACKAGES.match(own) is not None
    return True


#: Distributions whose code computes, orders or draws; normalised names.
_COMPUTING_PACKAGES = re.compile(
    r"python$|torch|pytorch|functorch|numpy|scipy|megatron|triton|nvidia-|cuda-|cupy|jax|transformer-engine|nv-grouped|apex"
    r"|mamba|causal-conv1d|flash|fast-hadamard|deep-?ep|deep-?gemm|einops|xformers|bitsandbytes|onnx|tensorrt|grouped-gemm"
    r"|mkl|intel-|onemkl|openmp|tbb|nvshmem|nccl|cudnn|cublas|cutlass|liger|emerging-optimizers|quack|tilelang|tvm"
)

#: Packages of a distribution whose code computes, or decides how others do.
_COMPUTING_SYSTEM_PACKAGES = re.compile(
    r"libc6$|libc-bin$|libm\d|libgcc|libstdc\+\+|libgomp|libomp|python3|libpython|libblas|liblapack|libatlas|libopenblas"
    r"|libmkl|intel-|libtbb|cuda|libcu|libnccl|libnv|nvidia|libcudnn|libnpp|libucx|libucc|libucp|openmpi|libopenmpi"
    r"|libhwloc|musl|libgfortran|libquadmath|libmpfr|libfftw|mathlib"
)

#: What tells one image from another in a line each.
_IMAGE_IDENTITY = ("id", "digest", "system")

#: Arguments that say where things lie, how one launch finds its peers, or how long it may take.
_PLACES_AND_TIMES = re.compile(
    r"(.*_)?(path|paths|dir|dirs|directory|file|filename|filepath|url|uri|port|addr|address|host|endpoint|timestamp)$"
    r"|(save|load|rank|local_rank|node_rank|ckpt_step|save_interval|async_save|pretrained_checkpoint|start_time|run_id)$"
    r"|(rdzv|wandb|tensorboard|one_logger|mlflow|inprocess|exit|timing|distributed_timeout|data_cache)_?.*"
)

#: Arguments that only report.
_REPORTING_ARGUMENTS = re.compile(
    r"(log|logging|check_weight_hash|profile|nvtx|record_memory|verbose|memory_snapshot)(_.*)?$"
)

_ABSOLUTE_PATH = re.compile(r"\[?\"?(/|~/|\./|file:)")


def _is_passed_over(kind: Kind, name: str, before: Fact | None, after: Fact | None) -> bool:
    if kind is Kind.ARGUMENTS:
        return _PLACES_AND_TIMES.match(name) is not None or _is_path(before, after)
    if kind in (Kind.TORCH, Kind.MEGATRON, Kind.WORKLOAD):
        return _is_path(before, after)
    return kind is Kind.VARIABLES and (name.endswith(("_DIR", "_PATH", "_FILE")) and _is_path(before, after))


def _is_path(*sides: Fact | None) -> bool:
    """All sides that are there hold a path."""
    there = [fact for fact in sides if fact is not None]
    return all(_ABSOLUTE_PATH.match(fact.value) for fact in there)


def _identity(facts: Mapping[str, Fact]) -> Mapping[str, Fact]:
    return {name: fact for name, fact in facts.items() if name in _IMAGE_IDENTITY}


def _value(fact: Fact | None) -> str | None:
    return None if fact is None else fact.value


def _normalised(name: str) -> str:
    """A distribution's name as PyPA normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()
