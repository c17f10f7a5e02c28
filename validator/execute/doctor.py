"""What this machine can run, what is missing, and how to get it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from validator.environment import Host, observe_host
from validator.errors import UsageError
from validator.execute.gpu_packages import DETERMINISTIC_SINCE, LAYERS
from validator.execute.interpreter import OLDEST, Interpreter, asked_environment, find_interpreter

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

#: What an interpreter tells of computing on a GPU: for which CUDA its PyTorch is built, how many devices that sees (it
#: is loaded only where the first word of the command line is not empty), and whether Triton finds Python's headers.
_GPU_QUESTION = """
import importlib.util, json, re, sys, sysconfig
from pathlib import Path
found = {"cuda": None, "devices": 0, "why": ""}
spec = importlib.util.find_spec("torch")
if spec is not None and spec.origin is not None:
    version = Path(spec.origin).with_name("version.py").read_text()
    built = re.search(r"^cuda\\b.*= '(.+)'", version, re.MULTILINE)
    found["cuda"] = built and built[1]
if found["cuda"] and sys.argv[1]:
    import torch
    try:
        torch.cuda.init()
    except Exception as error:
        found["why"] = (str(error).strip().splitlines() or [type(error).__name__])[0]
    else:
        found["devices"] = torch.cuda.device_count()
found["headers"] = Path(sysconfig.get_paths()["include"], "Python.h").is_file()
print(json.dumps(found))
"""
_GPU_SECONDS = 120

#: C compilers that Triton looks for.
_COMPILERS = ("gcc", "clang")


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
    host = observe_host()
    return Diagnosis((*_interpreter(python, megatron, host), *_machine(host), *_disk(directory), *_programs()))


def _interpreter(python: str | None, megatron: Path | None, host: Host) -> Iterator[Finding]:
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
    if interpreter.packages["torch"] is not None:
        yield from _gpu_build(interpreter, len(host.gpus))
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


def _gpu_build(interpreter: Interpreter, gpus: int) -> Iterator[Finding]:
    """Whether pipelines with device cuda could compute with this interpreter: notes, since none for CPU needs it."""
    needed = "pipelines with device cuda only"
    try:
        done = subprocess.run(
            [str(interpreter.path), "-c", _GPU_QUESTION, "look" if gpus else ""],
            capture_output=True, text=True, timeout=_GPU_SECONDS, check=True, stdin=subprocess.DEVNULL,
            env=asked_environment(),
        )  # fmt: skip
        told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        cuda, devices, why, headers = (told[key] for key in ("cuda", "devices", "why", "headers"))
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        yield Finding("cuda", State.NOTE, f"{interpreter.path} does not say ({type(error).__name__})", needed)
        return
    if cuda is None:
        build = "install the build of torch for this machine's CUDA: https://pytorch.org/get-started/locally/"
        yield Finding("cuda", State.NOTE, "torch is built without it", f"{build} ({needed})")
    elif not gpus:
        yield Finding("cuda", State.OK, f"torch is built for CUDA {cuda}")
    elif devices:
        yield Finding("cuda", State.OK, f"torch is built for CUDA {cuda} and sees {devices} of {gpus} GPUs")
    else:
        look = "look at CUDA_VISIBLE_DEVICES, and whether the driver is new enough for that CUDA"
        reason = f": {why}" if why else ""
        found = f"torch is built for CUDA {cuda} and sees none of {gpus} GPUs{reason}"
        yield Finding("cuda", State.NOTE, found, f"{look} ({needed})")
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is not None and headers:
        yield Finding("c compiler", State.OK, compiler)
        return
    found = f"neither {' nor '.join(_COMPILERS)} is here, and Triton compiles with one"
    if compiler is not None:
        found = f"{compiler}, and no headers of Python (Python.h) beside it, with which Triton compiles"
    get = "install gcc and the interpreter's headers (python3-dev); without them fingerprints are computed by PyTorch"
    yield Finding("c compiler", State.NOTE, found, f"{get} ({needed})")


def package_finding(
    interpreter: Interpreter, name: str, oldest: tuple[int, ...], purpose: str, megatron: Path | None = None
) -> Finding:
    """How one package that a launch needs stands with an interpreter."""
    if name == "megatron-core" and megatron is not None:
        if not (megatron / "megatron" / "core").is_dir():
            get = "let --megatron name the root of a Megatron-LM checkout"
            return Finding(name, State.MISSING, f"{megatron} holds no folder megatron/core", get)
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
