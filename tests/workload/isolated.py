"""Runs one function of a test module in a Python of its own: what it installs changes that process's PyTorch only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def isolated(
    function: Callable[..., None], *words: str, variables: Mapping[str, str] | None = None, seconds: float = 120
) -> str:
    """Call ``function(*words)`` in a new process; its assertions are this one's. Returns what it printed."""
    code = f"import sys; from {function.__module__} import {function.__name__} as test; test(*sys.argv[1:])"
    ran = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", **(variables or {})},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
