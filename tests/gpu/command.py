"""The real command line by ``python -m validator``: no installed command is needed beside Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.end_to_end.command import LIMIT, ROOT, Checked
from tests.project import Ran


def python(*words: str, limit: float = LIMIT) -> Ran:
    """Run this Python in the project's folder, with the package in reach whether it is installed or not."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=ROOT, timeout=limit,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr, {})


def check(folder: Path, pipeline: str | Path, *words: str) -> Checked:
    """``validator check PIPELINE``, its run in ``folder``/out."""
    out, file = folder / "out", folder / "report.json"
    ran = python("-m", "validator", "check", str(pipeline), "--out", str(out), "--json", str(file), *words)
    assert file.exists(), ran.out + ran.err
    return Checked(ran.code, ran.out, ran.err, json.loads(file.read_text()), out)
