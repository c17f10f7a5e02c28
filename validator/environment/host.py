"""What the machine is, seen from outside the launch; and the hardware class that a golden is kept under."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from validator.environment.nvml import GpuDevice, read_devices
from validator.errors import UsageError

#: CPU flags (as in /proc/cpuinfo) of each x86-64 level beyond those of the level before:
#: https://gitlab.com/x86-psABIs/x86-64-ABI, chapter "Micro-Architecture Levels"; ``pni`` is SSE3, ``abm`` is LZCNT.
_LEVELS = {
    "x86-64-v2": {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"},
    "x86-64-v3": {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"},
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
}

#: Levels that share a class: a pipeline pins its kernels to one choice on every x86-64-v3 machine.
_SAME_CLASS = {"x86-64-v4": "x86-64-v3"}

_QUERY = ("--query-gpu=name,driver_version,compute_cap,memory.total,mig.mode.current", "--format=csv,noheader,nounits")
_QUERY_SECONDS = 20


class Topology(Protocol):
    """What a hardware class takes from a computation: device, nodes, ranks on each node."""

    @property
    def device(self) -> str: ...
    @property
    def nodes(self) -> int: ...
    @property
    def ranks(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU as nvidia-smi names it; ``memory_mebibytes`` is its total, ``mig`` whether it is cut into instances
    (``Enabled``; empty or ``[N/A]`` where the driver does not say).
    """

    name: str
    driver: str
    capability: str
    memory_mebibytes: str
    mig: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """One machine. ``cpu_level`` is x86-64-v1 … v4, or the architecture's name where it is no x86-64.

    ``gpus`` are as nvidia-smi tells of them, ``devices`` as NVML does, where its binding is installed.
    """

    architecture: str
    cpu_model: str
    cpu_level: str
    cpus: int
    memory_gibibytes: int
    kernel: str
    libc: str
    gpus: tuple[Gpu, ...]
    devices: tuple[GpuDevice, ...] = ()


def observe_host() -> Host:
    """Look at this machine; what cannot be found out is ``unknown`` or 0, never an error."""
    architecture = platform.machine() or "unknown"
    model, flags = parse_cpuinfo(_text(Path("/proc/cpuinfo")))
    return Host(
        architecture=architecture,
        cpu_model=model,
        cpu_level=cpu_level(architecture, flags),
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0,
        memory_gibibytes=_memory(_text(Path("/proc/meminfo"))),
        kernel=f"{platform.system()} {platform.release()}",
        libc=" ".join(platform.libc_ver()).strip() or "unknown",
        gpus=parse_gpus(_nvidia_smi()),
        devices=read_devices(),
    )


def hardware_class(topology: Topology, host: Host) -> str:
    """Device and topology, as in ``cpu-x86-64-v3-1x2`` or ``cuda-nvidia-h200-1x4``: what a golden is keyed by.

    A GPU that is cut into instances (MIG) has fewer processors, and is another device: ``cuda-nvidia-h200-mig-1x1``.

    Raises ``UsageError`` for a CUDA computation on a host without a GPU.
    """
    shape = f"{topology.nodes}x{topology.ranks}"
    if topology.device == "cpu":
        return f"cpu-{_SAME_CLASS.get(host.cpu_level, host.cpu_level)}-{shape}"
    if not host.gpus:
        raise UsageError(
            "The pipeline computes on device cuda and nvidia-smi shows no GPU here; "
            "run it on a machine with a GPU, or choose a pipeline with device cpu."
        )
    mig = "mig-" if host.gpus[0].mig == "Enabled" else ""
    return f"cuda-{re.sub(r'[^a-z0-9]+', '-', host.gpus[0].name.lower()).strip('-')}-{mig}{shape}"


def cpu_level(architecture: str, flags: frozenset[str]) -> str:
    """The highest x86-64 level whose flags, and those of all levels below, are there."""
    if architecture not in ("x86_64", "AMD64"):
        return architecture
    level = "x86-64-v1"
    for name, needed in _LEVELS.items():
        if not needed <= flags:
            break
        level = name
    return level


def parse_cpuinfo(text: str) -> tuple[str, frozenset[str]]:
    """Model name and flags of the first processor in the text of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in text.splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip().lower(), value.strip())
    model = fields.get("model name") or fields.get("cpu part") or "unknown"
    return " ".join(model.split()), frozenset((fields.get("flags") or fields.get("features") or "").split())


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """GPUs from the comma-separated lines of nvidia-smi; lines of another shape are passed over."""
    rows = [[field.strip() for field in line.split(",")] for line in text.splitlines()]
    return tuple(Gpu(*row) for row in rows if len(row) in {4, 5} and all(row))


def _memory(text: str) -> int:
    match = re.search(r"^MemTotal:\s+(\d+) kB", text, re.MULTILINE)
    return round(int(match[1]) / 2**20) if match else 0


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _nvidia_smi() -> str:
    try:
        command = ["nvidia-smi", *_QUERY]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_QUERY_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""
