"""What is said of a Megatron that lacks something: one sentence each. The Megatrons here are made up, in folders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from validator.execute.request import LaunchRequest

ROOT = Path(__file__).resolve().parents[2]
TRIED = "which the workload needs; versions tried are 0.19.0, 0.19.2."

#: Asks for attributes, two words each; prints a line for each: its value, or the one sentence.
ASK = """
import sys
from validator.errors import LaunchError
from validator.workload.megatron_internals import require
for module, name in zip(sys.argv[1::2], sys.argv[2::2]):
    try:
        print(require(module, name))
    except LaunchError as error:
        print(error)
"""


@pytest.fixture
def megatron(tmp_path: Path) -> Path:
    """A folder with a Megatron of version 0.99.0 that has next to nothing."""
    core = tmp_path / "made-up" / "megatron" / "core"
    core.mkdir(parents=True)
    (core.parent / "__init__.py").touch()
    (core / "__init__.py").touch()
    (core / "package_info.py").write_text('__version__ = "0.99.0"\n')
    (core / "enums.py").write_text("class ModelType:\n    only_decoder = 1\n")
    (core / "kernels.py").write_text("import no_such_kernels\n")
    return tmp_path / "made-up"


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the made-up Megatron in front."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "RANK": "0"},
    )  # fmt: skip


#: Imports a module; prints what is said of its ImportError.
IMPORT = """
import importlib, sys
from validator.workload.megatron_internals.versions import missing_here
for module in sys.argv[1:]:
    try:
        importlib.import_module(module)
    except ImportError as error:
        print([missing_here(error)])
"""


def test_what_our_own_modules_import_in_vain_is_named_too(megatron: Path) -> None:
    ran = python(megatron, "-c", IMPORT, "validator.workload.data", "megatron.core.kernels")
    lacking, another = ran.stdout.splitlines()
    assert lacking == str([f"megatron-core 0.99.0 lacks megatron.core.mpu, {TRIED}"])
    assert another == "['']"  # Megatron's own trouble keeps its traceback


def test_what_is_lacking_is_named_with_the_version(megatron: Path) -> None:
    expected = {
        ("megatron.core.package_info", "__version__"): "0.99.0",
        ("megatron.core.enums", "ModelType.only_decoder"): "1",
        ("megatron.core.enums", "Fp8Recipe"): f"megatron-core 0.99.0 lacks megatron.core.enums.Fp8Recipe, {TRIED}",
        ("megatron.core.enums", "ModelType.encoder_or_decoder"): (
            f"megatron-core 0.99.0 lacks megatron.core.enums.ModelType.encoder_or_decoder, {TRIED}"
        ),
        ("megatron.training.training", "pretrain"): f"megatron-core 0.99.0 lacks megatron.training, {TRIED}",
        ("megatron.core.kernels", "anything"): (
            "the package no_such_kernels is missing, which megatron.core.kernels needs; "
            "install it beside megatron-core."
        ),
    }
    words = [word for question in expected for word in question]
    assert python(megatron, "-c", ASK, *words).stdout.splitlines() == list(expected.values())


def test_no_megatron_at_all_is_said_so(megatron: Path) -> None:
    for file in (megatron / "megatron").rglob("*.py"):
        file.unlink()
    (megatron / "megatron" / "__init__.py").touch()  # hides an installed one
    said = python(megatron, "-c", ASK, "megatron.core.enums", "ModelType").stdout
    assert said == "megatron-core is not installed; install one of 0.19.0, 0.19.2.\n"


def test_a_launch_ends_with_the_sentence_and_without_a_traceback(megatron: Path, tmp_path: Path) -> None:
    request = LaunchRequest(
        device="cpu", spec="reference", arguments=(), corpus=None, ranks=1, steps=1, seed=1,
        trajectory=tmp_path / "trajectory", scratch=tmp_path,
    )  # fmt: skip
    request.write(tmp_path / "request.json")
    ran = python(megatron, "-m", "validator.workload.entry", str(tmp_path / "request.json"))
    assert ran.returncode == 3
    assert ran.stderr == f"validator: megatron-core 0.99.0 lacks megatron.training, {TRIED}\n"
