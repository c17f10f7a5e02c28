"""Where each side's packages come from: an environment that has them, else an installation."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path

import pytest

from tests.diagnose.bisect.wheels import make_environment, make_wheel, unpack
from validator.diagnose.bisect import surveys
from validator.diagnose.bisect.sides import Sides, read_sides
from validator.diagnose.bisect.store import Origins
from validator.diagnose.bisect.surveys import Survey
from validator.errors import UsageError


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with alpha 1.0 and beta 1.0, and a wheel of alpha 2.0."""
    folder = tmp_path_factory.mktemp("sides")
    library = make_environment(folder / "environment")
    for name in ("alpha", "beta"):
        unpack(library, name, "1.0")
    make_wheel(folder / "wheels", "alpha", "2.0")
    (folder / "old.txt").write_text("alpha==1.0\n")
    (folder / "new.txt").write_text("alpha==2.0\n")
    return folder


def read(folder: Path, before: str, after: str, python: str | None = None, base: str | None = None) -> Sides:
    shutil.rmtree(folder / "cache", ignore_errors=True)
    origins = Origins((folder / "wheels",), offline=True)
    names = [str(folder / each) for each in (before, after)]
    places = [None if each is None else str(folder / each) for each in (python, base)]
    return read_sides(*names, python=places[0], base=places[1], origins=origins, cache=folder / "cache")


def test_what_the_python_has_in_the_pinned_version_is_not_installed(made: Path) -> None:
    sides = read(made, "old.txt", "new.txt", python="environment")
    assert [change.words for change in sides.changes] == ["alpha 1.0 -> 2.0"]
    before, after = sides.before.packages["alpha"], sides.after.packages["alpha"]
    assert before.root is not None
    assert after.root is not None
    assert before.root.is_relative_to(made / "environment")
    assert after.root.is_relative_to(made / "cache")
    assert set(sides.before.packages) == {"alpha"}  # beta is in neither lock


def test_what_neither_lock_names_comes_from_the_base(made: Path) -> None:
    sides = read(made, "old.txt", "new.txt", base="environment")
    assert [change.words for change in sides.changes] == ["alpha 1.0 -> 2.0"]
    assert {name: package.version for name, package in sides.after.packages.items()} == {"alpha": "2.0", "beta": "1.0"}


def test_a_lock_and_an_environment_are_compared_by_version(made: Path) -> None:
    sides = read(made, "environment", "new.txt")
    assert [change.words for change in sides.changes] == ["alpha 1.0 -> 2.0", "beta removed, 1.0"]


def test_python_is_for_locks(made: Path) -> None:
    with pytest.raises(UsageError, match="--python is for lock files"):
        read(made, "environment", "environment", python="environment")


def another_python(monkeypatch: pytest.MonkeyPatch, **other: object) -> None:
    """Every environment but the tests' own claims to be of another Python."""
    ask = surveys.survey

    def survey(option: str, label: str | None = None, *, hashed: bool = False) -> Survey:
        told = ask(option, label, hashed=hashed)
        if option == sys.executable:
            return told
        return dataclasses.replace(told, interpreter=dataclasses.replace(told.interpreter, **other))

    monkeypatch.setattr("validator.diagnose.bisect.sides.survey", survey)


def test_environments_of_two_pythons_are_refused(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    another_python(monkeypatch, tag="cpython-399", version=(3, 99, 1))
    with pytest.raises(
        UsageError, match=r"is of Python 3\.\d+ and .*environment of 3\.99, which cannot exchange packages"
    ):
        read(made, "old.txt", "new.txt", base="environment")


def test_another_release_of_the_same_python_is_told(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = ".".join(map(str, sys.version_info[:3]))
    another_python(monkeypatch, version=(sys.version_info[0], sys.version_info[1], 99))
    (remark,) = read(made, "old.txt", "new.txt", base="environment").remarks
    assert remark.endswith(f".99; all sets are launched with {ours}.")
