"""Reading sets of packages, and what changes between them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.diagnose.bisect.wheels import unpack
from validator.diagnose.bisect.locks import read_lock
from validator.diagnose.bisect.packages import PackageSet, apply, changes_between
from validator.diagnose.bisect.surveys import read_packages
from validator.errors import UsageError

MARKERS = {"python_version": "3.12", "sys_platform": "linux", "extra": ""}

LOCK = """\
# made by a tool
PyYAML==6.0.3 \\
    --hash=sha256:bb \\
    --hash=sha256:aa
    # via something
typing_extensions==4.16.0 ; python_version >= "3.8"   # a comment
colorama==0.4.6 ; sys_platform == "win32"
uvicorn[standard]==0.54.0

megatron-change-validator==0.1.0
"""


def locked(folder: Path, text: str) -> PackageSet:
    file = folder / "lock.txt"
    file.write_text(text)
    return read_lock(file, MARKERS)


def test_a_lock_is_read_with_hashes_markers_and_extras(tmp_path: Path) -> None:
    packages = locked(tmp_path, LOCK).packages
    assert {name: package.version for name, package in packages.items()} == {
        "pyyaml": "6.0.3",
        "typing-extensions": "4.16.0",
        "uvicorn": "0.54.0",
    }
    assert packages["pyyaml"].requirement == "PyYAML==6.0.3 --hash=sha256:aa --hash=sha256:bb"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("einops", "'einops' is not pinned; write it like einops==1.2.3."),
        ("einops==0.8.*", "is not pinned"),
        ("einops>=0.8,<1", "is not pinned"),
        ("einops @ file:///einops.whl", "is not pinned"),
        ("./einops", "is no pinned requirement"),
        ("-r other.txt", "the option -r is not accepted here"),
        ("--find-links=somewhere", "the option --find-links is not accepted here"),
    ],
)
def test_what_is_not_pinned_is_refused_with_its_line(line: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        locked(tmp_path, f"numpy==2.5.5\n{line}\n")
    assert says in str(caught.value)
    assert "lock.txt', line 2: " in str(caught.value)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lock.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="is no text"):
        read_lock(tmp_path / "lock.txt", MARKERS)


def test_changes_are_named_by_what_they_are(tmp_path: Path) -> None:
    before = locked(tmp_path, "a==1.0\nb==1.0\nc==1\nsame==2.0\n")
    after = locked(tmp_path, "b==2.0\nc==1.0.0\nd==1.0\nsame==2.0\n")
    changes = changes_between(before, after)
    assert [change.words for change in changes] == ["a removed, 1.0", "b 1.0 -> 2.0", "d added, 1.0"]
    made = {name: package.version for name, package in apply(before, changes).items()}
    assert made == {"b": "2.0", "c": "1", "d": "1.0", "same": "2.0"}
    assert apply(before, ()) == dict(before.packages)


def test_of_two_packages_of_one_name_the_first_on_the_path_counts(tmp_path: Path) -> None:
    for folder, version in (("one", "1.0"), ("two", "2.0")):
        unpack(tmp_path / folder, "thing", version)
    packages, remarks = read_packages([tmp_path / "one", tmp_path / "two"], "both")
    assert packages["thing"].version == "1.0"
    assert remarks == ()


def test_a_package_without_a_list_of_files_is_left_out_and_told(tmp_path: Path) -> None:
    (tmp_path / "old-1.0.dist-info").mkdir()
    (tmp_path / "old-1.0.dist-info" / "METADATA").write_text("Name: old\nVersion: 1.0\n")
    packages, remarks = read_packages([tmp_path], "here")
    assert packages == {}
    assert remarks == ("old 1.0 of here does not list its files and is left out.",)


def test_the_same_version_with_other_content_is_another_package(tmp_path: Path) -> None:
    for folder in ("one", "two", "three"):
        unpack(tmp_path / folder, "thing", "1.0", {"thing/__init__.py": "x = 1\n", "thing/data.bin": "abc"})
    (tmp_path / "two" / "thing" / "__init__.py").write_text("x = 2\n")  # by hand: the same size, and no record of it
    sets = [
        PackageSet(folder, read_packages([tmp_path / folder], folder, hashed=True)[0])
        for folder in ("one", "two", "three")
    ]
    assert [change.words for change in changes_between(sets[0], sets[1])] == ["thing 1.0, other files"]
    assert changes_between(sets[0], sets[2]) == ()
