"""Who started something that outlives a process (a container, a job): written on it, so that a later start can tell
whether it was left behind.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

#: What parts an owner's text; none of them can hold it.
_SEPARATOR = "/"


@dataclass(frozen=True, slots=True)
class Owner:
    """One process of one start of one machine. ``started`` is in clock ticks after the boot, as /proc has it."""

    host: str
    boot: str
    namespace: str
    process: int
    started: int

    @classmethod
    def current(cls) -> Self:
        """This process."""
        return cls(*_here(), os.getpid(), _started(os.getpid()) or 0)

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """What ``text`` says, ``None`` where no product wrote it."""
        parts = text.split(_SEPARATOR)
        try:
            host, boot, namespace, process, started = parts
            return cls(host, boot, namespace, int(process), int(started))
        except ValueError:
            return None

    @property
    def text(self) -> str:
        """As ``parse`` reads it: letters, digits, ``-``, ``_``, ``.`` and slashes."""
        return _SEPARATOR.join((self.host, self.boot, self.namespace, str(self.process), str(self.started)))

    @property
    def is_gone(self) -> bool:
        """Whether the process has surely ended; one on another machine or in another namespace may live."""
        host, boot, namespace = _here()
        if self.host != host:
            return False
        if self.boot != boot:
            return True
        return self.namespace == namespace and _started(self.process) != self.started


def _here() -> tuple[str, str, str]:
    """This machine's name, its boot, and the namespace in which process ids are counted."""
    namespace = _text(lambda: os.readlink("/proc/self/ns/pid")).strip("pid:[]")
    return socket.gethostname(), _text(lambda: Path("/proc/sys/kernel/random/boot_id").read_text()), namespace


def _text(read: Callable[[], str]) -> str:
    try:
        return read().strip()
    except OSError:
        return "unknown"


def _started(process: int) -> int | None:
    """When the process started; ``None`` where there is none (field 22 of proc_pid_stat(5))."""
    try:
        stat = Path(f"/proc/{process}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] == b"Z" else int(fields[19])
