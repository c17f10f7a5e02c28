"""What doctor says about an interpreter and a machine."""

from __future__ import annotations

import json
from pathlib import Path

from validator.execute.doctor import State, diagnose


def fake(folder: Path, packages: str, tag: str = "cpython-399") -> str:
    python = folder / "python"
    python.write_text(f'#!/bin/sh\necho \'{{"version": [3, 13, 0], "tag": "{tag}", "packages": {packages}}}\'\n')
    python.chmod(0o755)
    return str(python)


VERSIONS = {"torch": "2.14.1", "megatron-core": "0.19.2", "einops": "0.8.2", "psutil": "7.2.2", "numpy": "2.5.5"}
FULL = json.dumps(VERSIONS | {"xxhash": "4.1"})


def test_a_complete_environment_can_run(tmp_path: Path) -> None:
    assert diagnose(fake(tmp_path, FULL), tmp_path).can_run


def test_what_is_missing_comes_with_how_to_get_it(tmp_path: Path) -> None:
    python = fake(tmp_path, FULL.replace('"2.14.1"', "null"))
    found = diagnose(python, tmp_path)
    torch = next(finding for finding in found.findings if finding.name == "torch")
    assert not found.can_run
    assert torch.state is State.MISSING
    assert f"{python} -m pip install 'torch>=" in torch.advice


def test_another_pythons_environment_needs_an_xxhash_of_its_own(tmp_path: Path) -> None:
    found = diagnose(fake(tmp_path, FULL.replace('"4.1"', "null")), tmp_path)
    assert [finding.name for finding in found.findings if finding.state is State.MISSING] == ["xxhash"]


def test_an_older_package_is_a_note(tmp_path: Path) -> None:
    found = diagnose(fake(tmp_path, FULL.replace("0.19.2", "0.18.2")), tmp_path)
    megatron = next(finding for finding in found.findings if finding.name == "megatron-core")
    assert megatron.state is State.NOTE
    assert found.can_run


def test_a_checkout_stands_in_for_the_package(tmp_path: Path) -> None:
    found = diagnose(fake(tmp_path, FULL.replace('"0.19.2"', "null")), tmp_path, Path("/src/Megatron-LM"))
    assert found.can_run


def test_no_interpreter_is_said_and_not_raised(tmp_path: Path) -> None:
    found = diagnose(str(tmp_path / "none"), tmp_path)
    assert not found.can_run
    assert found.findings[0].state is State.MISSING


def test_the_machine_is_described(tmp_path: Path) -> None:
    names = {finding.name for finding in diagnose(None, tmp_path).findings}
    assert {"python", "cpu", "cores", "memory", "disk", "git", "gpu"} <= names
