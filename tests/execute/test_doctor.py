"""What doctor says about an interpreter and a machine."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from validator.environment import Host, observe_host
from validator.environment.host import Gpu
from validator.execute import doctor
from validator.execute.doctor import Finding, State, diagnose


def fake(folder: Path, packages: str, tag: str = "cpython-399", gpu: str = "{}") -> str:
    """An interpreter that answers both questions: the one about CUDA has that word in it."""
    python = folder / "python"
    about_itself = f'{{"version": [3, 13, 0], "tag": "{tag}", "packages": {packages}}}'
    python.write_text(
        f"#!/bin/sh\necho \"[$3]\" >>'{folder}/asked'\n"
        f"case \"$2\" in *torch.cuda*) echo '{gpu}' ;; *) echo '{about_itself}' ;; esac\n"
    )
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
    interpreter, checkout = fake(tmp_path, FULL.replace('"0.19.2"', "null")), tmp_path / "Megatron-LM"
    found = diagnose(interpreter, tmp_path, checkout)
    assert not found.can_run
    assert [each.found for each in found.findings if each.name == "megatron-core"] == [
        f"{checkout} holds no folder megatron/core"
    ]
    (checkout / "megatron" / "core").mkdir(parents=True)
    assert diagnose(interpreter, tmp_path, checkout).can_run


def test_no_interpreter_is_said_and_not_raised(tmp_path: Path) -> None:
    found = diagnose(str(tmp_path / "none"), tmp_path)
    assert not found.can_run
    assert found.findings[0].state is State.MISSING


def test_the_machine_is_described(tmp_path: Path) -> None:
    names = {finding.name for finding in diagnose(None, tmp_path).findings}
    assert {"python", "cpu", "cores", "memory", "disk", "git", "gpu"} <= names


H200 = Gpu("NVIDIA H200", "580.1", "9.0", "143771")
BUILT = {"cuda": "13.0", "devices": 0, "why": "", "headers": True}


def finding(folder: Path, name: str, told: dict[str, object]) -> Finding:
    found = diagnose(fake(folder, FULL, gpu=json.dumps(told)), folder)
    assert found.can_run  # no pipeline for CPU needs any of it
    (one,) = [each for each in found.findings if each.name == name]
    return one


def with_gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    host: Host = replace(observe_host(), gpus=(H200,) * count)
    monkeypatch.setattr(doctor, "observe_host", lambda: host)


def test_without_a_gpu_torch_is_not_loaded_and_its_build_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 0)
    assert finding(tmp_path, "cuda", BUILT) == Finding("cuda", State.OK, "torch is built for CUDA 13.0")
    assert (tmp_path / "asked").read_text().splitlines()[-1] == "[]"


def test_a_build_without_cuda_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 1)
    found = finding(tmp_path, "cuda", BUILT | {"cuda": None})
    assert (found.state, found.found) == (State.NOTE, "torch is built without it")
    assert found.advice.endswith("(pipelines with device cuda only)")


def test_gpus_that_torch_sees_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpus(monkeypatch, 2)
    found = finding(tmp_path, "cuda", BUILT | {"devices": 2})
    assert (found.state, found.found) == (State.OK, "torch is built for CUDA 13.0 and sees 2 of 2 GPUs")
    assert (tmp_path / "asked").read_text().splitlines()[-1] == "[look]"


def test_gpus_that_torch_does_not_see_are_a_note_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_gpus(monkeypatch, 1)
    found = finding(tmp_path, "cuda", BUILT | {"why": "The NVIDIA driver on your system is too old"})
    assert found.state is State.NOTE
    assert found.found.endswith("sees none of 1 GPUs: The NVIDIA driver on your system is too old")


def test_an_interpreter_that_does_not_say_is_a_note(tmp_path: Path) -> None:
    assert finding(tmp_path, "cuda", {}).found.endswith("does not say (KeyError)")


def test_tritons_compiler_and_headers_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, which = {"clang": "/usr/bin/clang"}, shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: here.get(name) if name in {"gcc", "clang"} else which(name))
    assert finding(tmp_path, "c compiler", BUILT) == Finding("c compiler", State.OK, "/usr/bin/clang")
    without = finding(tmp_path, "c compiler", BUILT | {"headers": False})
    assert without.found == "/usr/bin/clang, and no headers of Python (Python.h) beside it, with which Triton compiles"
    here.clear()
    none = finding(tmp_path, "c compiler", BUILT)
    assert (none.state, none.found) == (State.NOTE, "neither gcc nor clang is here, and Triton compiles with one")


@pytest.mark.slow
def test_a_real_torch_says_for_which_cuda_it_is_built(tmp_path: Path) -> None:
    import torch

    (cuda,) = [each for each in diagnose(None, tmp_path).findings if each.name == "cuda"]
    assert f"CUDA {torch.version.cuda}" in cuda.found if torch.version.cuda else "without" in cuda.found
