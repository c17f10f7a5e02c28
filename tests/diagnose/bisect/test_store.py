"""Installing once, by uv or by pip, into layers that are not written to any more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.diagnose.bisect.wheels import make_wheel
from validator.diagnose.bisect import store as store_module
from validator.diagnose.bisect.packages import Package
from validator.diagnose.bisect.store import Origins, Store
from validator.errors import LaunchError
from validator.execute.interpreter import find_interpreter


def pinned(name: str, version: str) -> Package:
    return Package(name, version, requirement=f"{name}=={version}")


def store_in(folder: Path) -> Store:
    return Store(folder / "cache", find_interpreter(None), Origins((folder / "wheels",), offline=True))


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_a_layer_is_compiled_read_only_and_found_again(
    installer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installer == "pip":
        monkeypatch.setattr(store_module, "_find_uv", lambda: None)
    assert (store_module._find_uv() is None) == (installer == "pip")
    for name in ("alpha", "beta"):
        make_wheel(tmp_path / "wheels", name, "1.0", {f"{name}/__init__.py": "x = 1\n"})
    store = store_in(tmp_path)
    packages = store.layer([pinned("alpha", "1.0"), pinned("beta", "1.0")])
    assert [(package.name, package.version) for package in packages] == [("alpha", "1.0"), ("beta", "1.0")]
    root = packages[0].root
    assert root is not None
    assert (root / "alpha" / "__pycache__" / f"__init__.{sys.implementation.cache_tag}.pyc").exists()
    for place in (root / "alpha", root / "alpha" / "__init__.py"):
        assert not place.stat().st_mode & 0o222
    stamp = root.stat().st_mtime_ns
    assert store.layer([pinned("alpha", "1.0"), pinned("beta", "1.0")]) == packages
    assert root.stat().st_mtime_ns == stamp
    assert [each.name for each in (tmp_path / "cache").iterdir()] == [root.name]


def test_another_content_of_the_same_version_is_another_layer(tmp_path: Path) -> None:
    found = []
    for text in ("x = 1\n", "x = 2\n"):
        make_wheel(tmp_path / "wheels", "alpha", "1.0", {"alpha.py": text})
        (package,) = store_in(tmp_path).layer([pinned("alpha", "1.0")])
        assert package.root is not None
        found.append((package.root / "alpha.py").read_text())
    assert found == ["x = 1\n", "x = 2\n"]


@pytest.mark.parametrize("installer", ["uv", "pip"])
def test_what_cannot_be_installed_is_one_sentence_and_leaves_nothing(
    installer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if installer == "pip":
        monkeypatch.setattr(store_module, "_find_uv", lambda: None)
    make_wheel(tmp_path / "wheels", "alpha", "1.0")
    with pytest.raises(LaunchError) as caught:
        store_in(tmp_path).layer([pinned("alpha", "2.0")])
    assert str(caught.value).startswith("alpha==2.0 cannot be installed: ")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_hash_that_does_not_match_is_refused(tmp_path: Path) -> None:
    make_wheel(tmp_path / "wheels", "alpha", "1.0")
    wrong = Package("alpha", "1.0", requirement=f"alpha==1.0 --hash=sha256:{'0' * 64}")
    with pytest.raises(LaunchError, match="alpha==1.0 cannot be installed"):
        store_in(tmp_path).layer([wrong])


def test_without_uv_and_pip_both_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "_find_uv", lambda: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    (tmp_path / "wheels").mkdir()
    with pytest.raises(LaunchError, match="Neither uv nor pip is there"):
        store_in(tmp_path).layer([pinned("alpha", "1.0")])
