"""How an environment is put together: whole folders where they belong to one package, files where not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.diagnose.bisect.wheels import unpack
from validator.diagnose.bisect.environments import Environments
from validator.diagnose.bisect.links import Folders
from validator.diagnose.bisect.packages import Package
from validator.diagnose.bisect.surveys import read_packages, survey
from validator.errors import LaunchError

#: A framework with a compiled library that finds another package's beside it, two packages that share a namespace.
PACKAGES = {
    "framework": {"framework/__init__.py": "", "framework/lib/libcore.so.1": "core", "framework/text/a.py": "x = 1\n"},
    "vendor-blas": {"vendor/blas/__init__.py": "", "vendor/blas/lib/libblas.so": "blas 1"},
    "vendor-words": {"vendor/words/__init__.py": "", "vendor/words/deep/er.py": ""},
    "plain": {"plain/__init__.py": "from plain.inner import value\n", "plain/inner.py": "value = 1\n", "single.py": ""},
}


def made(folder: Path, version: str, *names: str) -> dict[str, Package]:
    """Packages installed in a folder of their own."""
    for name in names:
        unpack(folder, name, version, PACKAGES[name])
    return read_packages([folder], str(folder))[0]


def environments(folder: Path, *packages: Package) -> Environments:
    python = survey(sys.executable)
    return Environments(folder, python.base, python.interpreter.version, Folders.of(packages))


def library_of(python: Path) -> Path:
    (library,) = python.parent.parent.glob("lib/python*/site-packages")
    return library


def test_a_folder_of_one_package_is_one_link_and_shared_or_compiled_ones_are_real(tmp_path: Path) -> None:
    packages = made(tmp_path / "one", "1.0", *PACKAGES)
    library = library_of(environments(tmp_path, *packages.values()).build("all", packages.values()))
    assert (library / "plain").is_symlink()
    assert (library / "single.py").is_symlink()
    for real in ("vendor", "vendor/blas", "vendor/blas/lib", "framework", "framework/lib"):
        assert (library / real).is_dir()
        assert not (library / real).is_symlink()
    for linked in ("vendor/words", "vendor/blas/lib/libblas.so", "framework/lib/libcore.so.1", "framework/text"):
        assert (library / linked).is_symlink()


def test_a_library_finds_the_one_that_was_changed_beside_it(tmp_path: Path) -> None:
    """As a loader does: from the folder in which the first was found, by a relative path."""
    one, two = (
        made(tmp_path / each, version, "framework", "vendor-blas") for each, version in (("one", "1"), ("two", "2"))
    )
    (tmp_path / "two" / "vendor" / "blas" / "lib" / "libblas.so").write_text("blas 2")
    mixed = {**one, "vendor-blas": two["vendor-blas"]}
    library = library_of(environments(tmp_path, *one.values(), *two.values()).build("mixed", mixed.values()))
    beside = os.path.join(library, "framework", "lib", "..", "..", "vendor", "blas", "lib", "libblas.so")
    assert Path(beside).read_text() == "blas 2"


def test_the_environment_imports_what_it_is_made_of_and_knows_its_versions(tmp_path: Path) -> None:
    packages = made(tmp_path / "one", "1.5", "plain")
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(tmp_path / "one")], check=True)
    python = environments(tmp_path, *packages.values()).build("some", packages.values())
    asked = (
        "import plain, importlib.metadata as m; print(plain.value, m.version('plain'), len(list(m.distributions())))"
    )
    done = subprocess.run([str(python), "-I", "-c", asked], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["1", "1.5", "1"]


def test_bytecode_beside_a_source_comes_with_it(tmp_path: Path) -> None:
    packages = made(tmp_path / "one", "1.0", *PACKAGES)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(tmp_path / "one")], check=True)
    library = library_of(environments(tmp_path, *packages.values()).build("all", packages.values()))
    name = f"__init__.{sys.implementation.cache_tag}.pyc"
    assert (library / "framework" / "__pycache__" / name).is_symlink()
    assert (library / "plain" / "__pycache__" / name).exists()


def test_discarding_an_environment_leaves_the_packages(tmp_path: Path) -> None:
    packages = made(tmp_path / "one", "1.0", *PACKAGES)
    before = sorted(tmp_path.glob("one/**/*"))
    place = environments(tmp_path / "built", *packages.values())
    place.build("all", packages.values())
    place.discard("all")
    assert not (tmp_path / "built" / "all").exists()
    assert sorted(tmp_path.glob("one/**/*")) == before


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(LaunchError, match="cannot be built"):
        environments(tmp_path / "taken").build("all", [])
