"""What this machine can run, what is missing, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from validator.environment import Host, observe_host
from validator.errors import UsageError
from validator.execute.gpu_packages import DETERMINISTIC_SINCE, LAYERS
from validator.execute.interpreter import OLDEST, Interpreter, find_interpreter

#: Packages that a launch needs: the oldest version known to work, and what for.
PACKAGES = {
    "torch": ((2, 13), "tensors and torchrun"),
    "megatron-core": ((0, 19), "the training loop"),
    "einops": ((0, 8), "Mamba layers"),
    "psutil": ((7, 0), "writing checkpoints"),
    "numpy": ((2, 0), "Megatron's data sets"),
}

#: A CPU check wants this much: measured need, rounded up.
_MEMORY_GIB = 6
_DISK_GIB = 2
_CORES = 2


class State(StrEnum):
    """How one thing stands."""

    OK = "ok"
    NOTE = "note"  # works, but slower or only partly
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``advice`` says how to get what is missing."""

    name: str
    state: State
    found: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings about one machine and one interpreter."""

    findings: tuple[Finding, ...]

    @property
    def can_run(self) -> bool:
        """Whether the pipelines for CPU run here."""
        return not any(finding.state is State.MISSING for finding in self.findings)

    @property
    def lacking(self) -> str:
        """Everything that is missing, in one sentence; empty where nothing is."""
        missing = [_wanted(finding.name) for finding in self.findings if finding.state is State.MISSING]
        if not missing:
            return ""
        return f"Lacking: {', '.join(missing[:-1])} and {missing[-1]}." if missing[1:] else f"Lacking: {missing[0]}."


def _wanted(name: str) -> str:
    oldest = OLDEST if name == "python" else PACKAGES[name][0] if name in PACKAGES else ()
    label = "Python" if name == "python" else name
    return f"{label} {'.'.join(map(str, oldest))} or newer" if oldest else label


def diagnose(python: str | None, directory: Path, megatron: Path | None = None) -> Diagnosis:
    """Look at this machine, at the interpreter that ``--python`` names (our own by default), and at ``directory``'s
    disk.
    """
    return Diagnosis((*_interpreter(python, megatron), *_machine(observe_host()), *_disk(directory), *_programs()))


def _interpreter(python: str | None, megatron: Path | None) -> Iterator[Finding]:
    try:
        interpreter = find_interpreter(python, (*PACKAGES, *LAYERS, "xxhash"))
    except UsageError as error:
        oldest = ".".join(map(str, OLDEST))
        yield Finding(
            "python", State.MISSING, str(error), f"install Python {oldest} or newer and give it with --python"
        )
        return
    yield Finding("python", State.OK, f"{'.'.join(map(str, interpreter.version))} at {interpreter.path}")
    for name, (oldest_version, purpose) in PACKAGES.items():
        yield package_finding(interpreter, name, oldest_version, purpose, megatron)
    yield from _gpu_packages(interpreter)
    if not interpreter.shares_extensions and interpreter.packages["xxhash"] is None:
        found = "not installed, and ours is built for another Python"
        yield Finding("xxhash", State.MISSING, found, f"{interpreter.path} -m pip install xxhash")


def _gpu_packages(interpreter: Interpreter) -> Iterator[Finding]:
    """What pipelines with ``spec: megatron`` need beside the rest; a note, since none of the others does."""
    for name, purpose in LAYERS.items():
        version, oldest = interpreter.packages.get(name), DETERMINISTIC_SINCE.get(name, ())
        wanted = f"{name}>={'.'.join(map(str, oldest))}" if oldest else name
        get = f"{interpreter.path} -m pip install '{wanted}' (pipelines with spec megatron only)"
        if version is None:
            yield Finding(name, State.NOTE, f"not installed; {purpose}", get)
        elif tuple(map(int, re.findall(r"\d+", version)[: len(oldest)])) < oldest:
            yield Finding(name, State.NOTE, f"{version}, which has no deterministic backward pass", get)
        else:
            yield Finding(name, State.OK, version)


def package_finding(
    interpreter: Interpreter, name: str, oldest: tuple[int, ...], purpose: str, megatron: Path | None = None
) -> Finding:
    """How one package that a launch needs stands with an interpreter."""
    if name == "megatron-core" and megatron is not None:
        return Finding(name, State.OK, f"the checkout {megatron}")
    version = interpreter.packages[name]
    wanted = ".".join(map(str, oldest))
    get = f"{interpreter.path} -m pip install '{name}>={wanted}'"
    if version is None:
        ours = " (or make setup, for the project's own environment)" if interpreter.path == Path(sys.executable) else ""
        return Finding(name, State.MISSING, f"not installed; needed for {purpose}", get + ours)
    if tuple(map(int, re.findall(r"\d+", version)[: len(oldest)])) < oldest:
        return Finding(name, State.NOTE, f"{version}, older than {wanted}, with which nobody has tried it", get)
    return Finding(name, State.OK, version)


def _machine(host: Host) -> Iterator[Finding]:
    name = f"{host.cpu_model}, {host.cpu_level}"
    if host.cpu_level in {"x86-64-v3", "x86-64-v4"}:
        yield Finding("cpu", State.OK, name)
    else:
        yield Finding("cpu", State.NOTE, name, "the shipped goldens are of x86-64-v3: record your own on this machine")
    cores = State.OK if host.cpus >= _CORES else State.NOTE
    yield Finding(
        "cores", cores, str(host.cpus), "" if cores is State.OK else "two ranks share one core: twice as slow"
    )
    memory = State.OK if host.memory_gibibytes >= _MEMORY_GIB else State.NOTE
    advice = "" if memory is State.OK else f"the CPU pipelines want {_MEMORY_GIB} GiB"
    yield Finding("memory", memory, f"{host.memory_gibibytes} GiB", advice)
    if host.gpus and not host.devices:
        what = "not installed, or without an answer: memory errors (ECC), clocks and limits are not looked at"
        yield Finding("nvidia-ml-py", State.NOTE, what, f"{sys.executable} -m pip install nvidia-ml-py")
    if host.gpus:
        yield Finding("gpu", State.OK, f"{len(host.gpus)} × {host.gpus[0].name}, driver {host.gpus[0].driver}")
    else:
        yield Finding("gpu", State.NOTE, "none", "pipelines with device cuda need one; those with device cpu do not")


def _disk(directory: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(directory).free / 2**30
    enough = free >= _DISK_GIB
    advice = "" if enough else f"a check wants {_DISK_GIB} GiB: free some, or give --out on another disk"
    yield Finding("disk", State.OK if enough else State.NOTE, f"{free:.1f} GiB free in {directory}", advice)
    if not os.access(directory, os.W_OK):
        yield Finding("folder", State.NOTE, f"{directory} is not writable", "give --out")


def _programs() -> Iterator[Finding]:
    git = shutil.which("git")
    if git:
        yield Finding("git", State.OK, git)
    else:
        yield Finding("git", State.NOTE, "not installed", "golden log, and the chain in golden verify, need it")
    for module, package in (("yaml", "pyyaml"), ("xxhash", "xxhash"), ("numpy", "numpy")):
        if importlib.util.find_spec(module) is None:
            yield Finding(
                package,
                State.MISSING,
                "not installed for the validator itself",
                f"{sys.executable} -m pip install {package}",
            )
