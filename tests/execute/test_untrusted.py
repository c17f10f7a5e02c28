"""Files of code under test: what is opened, how much is counted, and that all of it goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from validator.check.arguments import TRACKER, saved_step
from validator.execute.untrusted import DEEPEST, ForgedError, open_plain, read_small, remove_tree, used_bytes


def opened(folder: Path, name: str) -> int | None:
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return open_plain(directory, name)
    finally:
        os.close(directory)


def test_a_plain_file_is_opened_and_an_absent_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    file = opened(tmp_path, "file")
    assert file is not None
    os.close(file)
    assert opened(tmp_path, "absent") is None


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder", "second name"])
def test_anything_else_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    (tmp_path / "target").write_text("secret")
    place = tmp_path / "file"
    {
        "link": lambda: place.symlink_to(tmp_path / "target"),
        "dangling": lambda: place.symlink_to("nowhere"),
        "pipe": lambda: os.mkfifo(place),
        "folder": place.mkdir,
        "second name": lambda: place.hardlink_to(tmp_path / "target"),
    }[kind]()
    with pytest.raises(ForgedError, match="no plain file"):
        opened(tmp_path, "file")
    assert read_small(place, 100) is None


def test_only_small_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(64))
    assert read_small(tmp_path / "file", 64) == bytes(64)
    assert read_small(tmp_path / "file", 63) is None
    assert read_small(tmp_path / "absent" / "file", 64) is None


@pytest.mark.parametrize(
    ("content", "step"), [(b"3", 3), (b" 12\n", 12), (b"", 0), (b"release", 0), (b"-3", 0), (b"1" * 65, 0)]
)
def test_the_saved_step_is_a_number_or_none_yet(tmp_path: Path, content: bytes, step: int) -> None:
    (tmp_path / TRACKER).write_bytes(content)
    assert saved_step(tmp_path) == step


def test_a_tracker_that_is_a_link_says_nothing(tmp_path: Path) -> None:
    (tmp_path / TRACKER).symlink_to("/dev/zero")
    assert saved_step(tmp_path) == 0


def test_bytes_are_those_allocated_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    (tmp_path / "own" / "link").symlink_to(tmp_path / "large")
    with (tmp_path / "own" / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    assert used_bytes(tmp_path / "own", 1 << 40) < 1 << 16
    assert used_bytes(tmp_path, 1 << 40) >= 1 << 20
    assert used_bytes(tmp_path / "absent", 1) == 0


def test_folders_that_are_nested_without_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / "/".join(["d"] * (DEEPEST + 2))).mkdir(parents=True)
    with pytest.raises(ForgedError, match=f"deeper than {DEEPEST}"):
        used_bytes(tmp_path, 1 << 40)


@pytest.mark.parametrize("mode", [0o000, 0o300, 0o600])
def test_a_folder_that_cannot_be_looked_into_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """It stays writable for who owns it (0300), or at least holds what was written before."""
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "file").write_bytes(bytes(1 << 20))
    folder.chmod(mode)
    monkeypatch.chdir(tmp_path)
    root = os.geteuid() == 0
    if root:  # whom no mode keeps out
        os.chown(tmp_path, 65534, -1)
        os.chown(folder, 65534, -1)
        os.seteuid(65534)
    try:
        with pytest.raises(ForgedError, match=r"a folder that cannot be read \(Permission denied\)"):
            used_bytes(Path(), 1 << 40)
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o700)


def test_everything_goes_and_nothing_that_a_link_names(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    folder = tmp_path / "folder"
    (folder / "closed" / "inside").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "kept")
    (folder / "closed").chmod(0)
    here = os.getcwd()
    os.chdir(folder)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)
    remove_tree(folder)
    assert not folder.exists()
    assert (tmp_path / "kept" / "file").exists()
    remove_tree(folder)
