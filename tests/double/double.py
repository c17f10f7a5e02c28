"""The double as tests see it: an executable in the place of Python, and a file of faults."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).parent / "launch_double.py"


@dataclass(frozen=True)
class Double:
    """An executable that takes the place of a Python interpreter and misbehaves as told."""

    python: Path
    faults_file: Path

    def misbehave(self, **launches: Mapping[str, Any]) -> None:
        """Set the faults by launch name (``every`` for all; a dash in a name is written as an underscore)."""
        faults = {("*" if name == "every" else name.replace("_", "-")): value for name, value in launches.items()}
        self.faults_file.write_text(json.dumps(faults))

    @classmethod
    def create(cls, folder: Path) -> Double:
        """A double without faults, in a folder of its own."""
        folder.mkdir()
        faults_file = folder / "faults.json"
        faults_file.write_text("{}")
        python = folder / "python"
        words = shlex.join([sys.executable, str(_PROGRAM)])
        python.write_text(f'#!/bin/sh\nDOUBLE={shlex.quote(str(faults_file))} exec {words} "$@"\n')
        python.chmod(0o755)
        return cls(python, faults_file)
