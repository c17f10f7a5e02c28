"""An attempt's folder: what is to be done, and what the runner leaves there. Shared by service and runner."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Work:
    """The folder of one attempt."""

    folder: Path

    @property
    def order(self) -> Path:
        """What is to be done, JSON."""
        return self.folder / "order.json"

    @property
    def token(self) -> Path:
        """Leave to push the result; readable by its owner only."""
        return self.folder / "token"

    @property
    def lock(self) -> Path:
        """Held by the runner as long as it lives: the kernel lets go of it whatever ends the runner."""
        return self.folder / "lock"

    @property
    def runner(self) -> Path:
        """Process ID of the runner."""
        return self.folder / "runner.pid"

    @property
    def out(self) -> Path:
        """What the check leaves behind."""
        return self.folder / "out"

    @property
    def report(self) -> Path:
        return self.out / "report.json"

    @property
    def log(self) -> Path:
        """What the runner and the check printed."""
        return self.folder / "log.txt"

    @property
    def progress(self) -> Path:
        """The check's last line of progress."""
        return self.folder / "progress.txt"

    @property
    def end(self) -> Path:
        """How it ended, JSON: ``sentence``, and ``final`` where another attempt would end the same."""
        return self.folder / "end.json"

    def read(self, file: Path) -> dict[str, Any]:
        """A JSON file; empty where it is not there."""
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    @staticmethod
    def write(file: Path, content: Mapping[str, object] | str, mode: int = 0o644) -> None:
        """Write a file whole or not at all."""
        part = file.with_name(f".{file.name}.part")
        text = content if isinstance(content, str) else json.dumps(content, indent=2) + "\n"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
