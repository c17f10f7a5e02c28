"""``benchmarks/on_gpu.sh`` on a machine without a GPU: it says so, goes on, and leaves its file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def on_gpu(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "benchmarks" / "on_gpu.sh"), "--out", str(folder), *words]
    environment = {**os.environ, "PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": "", **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)


def test_what_cannot_be_measured_is_named_and_the_rest_still_runs(tmp_path: Path) -> None:
    ran = on_gpu(tmp_path, "golden", "facts", "--pipeline", "no-such-pipeline")
    assert ran.returncode == 1
    found = json.loads((tmp_path / "on_gpu.json").read_text())
    assert [section["name"] for section in found["sections"]] == ["golden-record", "golden-check", "facts"]
    assert [section["status"] for section in found["sections"][:2]] == [2, 2]
    assert found["facts"]["packages"]["torch"]
    assert "There is no pipeline 'no-such-pipeline'" in ran.stdout
    assert "golden-record  exit 2" in ran.stdout


def test_no_section_begins_when_the_time_is_over(tmp_path: Path) -> None:
    ran = on_gpu(tmp_path, "facts", TOTAL="4")
    assert (ran.returncode, "No time is left." in ran.stdout) == (1, True)
    assert json.loads((tmp_path / "on_gpu.json").read_text())["sections"] == [
        {"name": "facts", "status": 124, "seconds": 0}
    ]


def test_another_word_is_answered_with_the_usage(tmp_path: Path) -> None:
    ran = on_gpu(tmp_path, "everything")
    assert ran.returncode == 2
    assert "Sections: facts tests digest golden fingerprints overhead cpu." in ran.stderr
