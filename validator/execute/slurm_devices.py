"""Memory errors of a job's GPUs: counted by its tasks on their nodes, looked at here.

Both sides read this file; on a node it runs under a bare interpreter, with the standard library only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self, final

from validator.environment.nvml import MODULE, GpuDevice, memory_errors_between, read_devices
from validator.errors import LaunchError


def binding() -> str | None:
    """The file of NVIDIA's binding as it is installed beside the product; ``None`` where it is not."""
    found = importlib.util.find_spec(MODULE)
    return None if found is None else found.origin


def use_binding(file: str | None) -> None:
    """Load the binding from ``file``, whatever this interpreter has; without it nothing is known, and nothing fails."""
    spec = None if file is None else importlib.util.spec_from_file_location(MODULE, file)
    if spec is None or spec.loader is None:
        return
    module = sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception:  # it is not on this node, or wants another Python
        del sys.modules[MODULE]


@final
@dataclass(frozen=True, slots=True)
class Counts:
    """What the GPUs of one task had counted ``before`` its launch. ``visible`` are theirs, as CUDA_VISIBLE_DEVICES
    names them; a node's other GPUs may belong to other jobs.
    """

    file: Path
    node: str
    visible: str | None
    before: tuple[GpuDevice, ...]

    @classmethod
    def start(cls, folder: Path, task: str, node: str, visible: str | None) -> Self:
        """Look at them now."""
        return cls(folder / f"gpus-{task}.json", node, visible, _own(visible))

    def note(self) -> None:
        """Write down how they stand now, whole or not at all: the job may be killed at any time."""
        sides = {"before": self.before, "after": _own(self.visible)}
        content = {side: [asdict(device) for device in devices] for side, devices in sides.items()}
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"node": self.node, **content}), encoding="utf-8")
        os.replace(part, self.file)


def memory_errors(folder: Path) -> dict[str, str]:
    """What a launch's GPUs counted from start to end, by node; empty where none did.

    Raises ``LaunchError`` for notes in ``folder`` that cannot be read.
    """
    found: dict[str, dict[str, None]] = {}
    for file in sorted(folder.glob("gpus-*.json")):
        try:
            told = json.loads(file.read_text(encoding="utf-8"))
            before, after = (tuple(map(device_of, told[side])) for side in ("before", "after"))
            node, words = str(told["node"]), memory_errors_between(before, after)
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise LaunchError(f"{file} says nothing readable of the node's GPUs ({type(error).__name__}).") from error
        if words:
            found.setdefault(node, {})[words] = None
    return {node: "; ".join(words) for node, words in found.items()}


def device_of(told: Mapping[str, Any]) -> GpuDevice:
    """A GPU as a node told of it."""
    return GpuDevice(**{**told, "throttling": tuple(told["throttling"])})


def _own(visible: str | None) -> tuple[GpuDevice, ...]:
    names = (visible or "").split(",")
    if not all(name.isdigit() for name in names):
        return read_devices()
    return tuple(device for device in read_devices() if str(device.index) in names)
