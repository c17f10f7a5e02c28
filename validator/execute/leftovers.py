"""Finds a launch's processes by a mark in their environment: the last resort should the supervisor itself be killed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

#: Variable that every process of a launch inherits; its value is unique to the launch.
MARK = "VALIDATOR_LAUNCH"


def marked(value: str) -> Iterator[int]:
    """Processes that carry the mark now, this one excepted."""
    wanted = f"{MARK}={value}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue  # ended meanwhile, or another user's
            if wanted in variables:
                yield int(entry.name)


def kill_marked(value: str) -> None:
    """SIGKILL every process that carries the mark, until none is left."""
    while processes := list(marked(value)):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
