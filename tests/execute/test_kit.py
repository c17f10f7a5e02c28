"""What a launch gets from us, and what of the caller's shell it sees."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

import validator
from tests.double.double import Double
from validator.errors import UsageError
from validator.execute.interpreter import Interpreter, find_interpreter
from validator.execute.kit import build_kit, launch_environment, surround
from validator.execute.launch import Surroundings


def ours() -> Interpreter:
    return find_interpreter(None)


def test_the_kit_links_to_our_package_and_xxhash_only(tmp_path: Path) -> None:
    kit = build_kit(tmp_path / "kit", ours())
    assert sorted(path.name for path in kit.iterdir()) == ["validator", "xxhash"]
    assert (kit / "validator").resolve() == Path(validator.__file__).resolve().parent


def test_another_pythons_launch_brings_its_own_xxhash(tmp_path: Path) -> None:
    other = dataclasses.replace(ours(), tag="cpython-399")
    assert [path.name for path in build_kit(tmp_path / "kit", other).iterdir()] == ["validator"]


def test_the_kit_is_the_one_that_is_loaded(tmp_path: Path) -> None:
    surroundings = Surroundings(Path(sys.executable), build_kit(tmp_path / "kit", ours()), None, {})
    asked = "import validator, xxhash; print(validator.__file__); print(xxhash.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", asked],
        env=launch_environment(surroundings),
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    for line in done.stdout.decode().splitlines():
        assert line.startswith(str(tmp_path / "kit"))


def test_the_callers_shell_has_no_part_in_a_launch(tmp_path: Path) -> None:
    surroundings = Surroundings(Path("python"), tmp_path / "kit", tmp_path / "megatron", {"MKL_CBWR": "COMPATIBLE"})
    caller = {
        "PATH": "/bin", "HOME": "/home/a", "MKL_CBWR": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "PYTHONPATH": "/evil",
        "NCCL_ALGO": "Tree", "LD_PRELOAD": "x.so", "TORCH_LOGS": "all",
    }  # fmt: skip
    environment = launch_environment(surroundings, caller)
    assert environment == {
        "PATH": "/bin",
        "HOME": "/home/a",
        "MKL_CBWR": "COMPATIBLE",
        "PYTHONPATH": f"{tmp_path / 'kit'}:{tmp_path / 'megatron'}",
        "PYTHONNOUSERSITE": "1",
        "PYTHONSAFEPATH": "1",
        "PYTHONUNBUFFERED": "1",
    }


def test_changes_come_on_top_of_the_pipelines_variables(tmp_path: Path) -> None:
    surroundings = surround(tmp_path / "kit", ours(), None, {"A": "pipeline", "B": "pipeline"}, {"B": "changed"})
    assert surroundings.variables == {"A": "pipeline", "B": "changed"}


def test_a_variable_that_the_product_owns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="PYTHONPATH"):
        surround(tmp_path / "kit", ours(), None, {}, {"PYTHONPATH": "/x"})


def test_a_folder_without_megatron_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="megatron/core"):
        surround(tmp_path / "kit", ours(), tmp_path, {}, {})


def test_an_interpreter_is_found_by_file_and_by_environment(double: Double, tmp_path: Path) -> None:
    assert find_interpreter(str(double.python)).path == double.python
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "python").symlink_to(double.python)
    found = find_interpreter(str(tmp_path / "environment"), ("no-such-package", "xxhash"))
    assert found.path == tmp_path / "environment" / "bin" / "python"
    assert found.version == sys.version_info[:3]
    assert found.packages["no-such-package"] is None
    assert found.packages["xxhash"] is not None


def test_what_is_no_interpreter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--python"):
        find_interpreter(str(tmp_path / "nothing"))
    with pytest.raises(UsageError, match="does not answer"):
        find_interpreter("/bin/true")


def test_an_old_interpreter_is_refused(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\necho \'{"version": [3, 11, 4], "tag": "cpython-311", "packages": {}}\'\n')
    old.chmod(0o755)
    with pytest.raises(UsageError, match=r"3\.11\.4.*3\.12"):
        find_interpreter(str(old))
