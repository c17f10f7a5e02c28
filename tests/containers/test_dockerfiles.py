"""The project's Dockerfiles: clean, pinned as the project is, and not root."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "containers").glob("*/Dockerfile"))


def test_there_is_one_for_cpu_and_one_for_cuda() -> None:
    assert [file.parent.name for file in FILES] == ["cpu", "cuda"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_hadolint_has_nothing_to_say(file: Path) -> None:
    program = Path(sys.executable).parent / "hadolint"
    done = subprocess.run([program, "--no-color", file], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.parent.name)
def test_the_last_stage_is_not_root(file: Path) -> None:
    last = file.read_text().rpartition("\nFROM ")[2]
    assert re.findall(r"^USER (\S+)$", last, re.MULTILINE) == ["10001"]


def test_versions_in_the_cuda_image_are_those_of_the_constraints() -> None:
    text = (ROOT / "containers" / "cuda" / "Dockerfile").read_text()
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    found = dict(pair.split("==") for pair in re.findall(r"[\w-]+==[\w.]+", text))
    assert {name: found[name] for name in found if name in pinned} == {
        name: pinned[name] for name in ("megatron-core", "einops", "psutil", "xxhash")
    }
    major, minor = map(int, found["causal-conv1d"].split(".")[:2])
    assert (major, minor) >= (1, 6)
