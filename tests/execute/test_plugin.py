"""The file of ``--plugin``: what is refused before anything starts, and what a launch finds in its kit."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.project import Project
from validator.errors import UsageError
from validator.execute.container import kit_binds
from validator.execute.interpreter import find_interpreter
from validator.execute.kit import surround
from validator.execute.plugin import FOLDER, Plugin

GOOD = b"def install(launch):\n    pass\n"


def refused(file: Path, content: bytes | None = None) -> str:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        Plugin.read(file)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.startswith(repr(str(file)))
    assert sentence.endswith("--plugin takes a Python file that defines install(launch).")
    return sentence


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "missing.py")
    assert "Is a directory" in refused(tmp_path)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"x = 1\ny = = 2\n", "line 2 is no Python (invalid syntax)"),
        (b"\x7fELF\x00\x01", "is no Python (source code string cannot contain null bytes)"),
        (b"x = '\xff\xfe'\n", "is no Python ("),
        (b"def setup(launch):\n    pass\n", "defines no install"),
        (b"class Fault:\n    def setup(self): ...\n", "defines no install"),
        (b"x = 1\ndef install():\n    pass\n", "line 2: install does not take one argument"),
        (b"def install(launch, rank):\n    pass\n", "line 1: install does not take one argument"),
        (b"def install(launch, *, rank):\n    pass\n", "line 1: install does not take one argument"),
        (b"async def install(launch):\n    pass\n", "line 1: install is asynchronous"),
    ],
)
def test_what_defines_no_usable_install_is_refused_with_its_line(content: bytes, says: str, tmp_path: Path) -> None:
    assert says in refused(tmp_path / "fault.py", content)


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        b"def install(launch, rank=0, *, seed=1):\n    pass\n",
        b"def install(*all):\n    pass\n",
        b"from somewhere import begin as install\n",
        b"install = lambda launch: None\n",
        b"if True:\n    def install(launch):\n        pass\n",
    ],
)
def test_every_way_to_define_install_is_taken(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "fault.py").write_bytes(content)
    assert Plugin.read(tmp_path / "fault.py").content == content


def test_the_kit_links_a_copy_which_every_place_of_launches_reads(tmp_path: Path) -> None:
    file = tmp_path / "my fault.py"
    file.write_bytes(GOOD)
    plugin = Plugin.read(file)
    file.write_bytes(b"raise SystemExit\n")  # changed meanwhile: what was read counts
    surroundings = surround(tmp_path / "kit", find_interpreter(None), None, {}, {}, plugin)
    copy = tmp_path / "kit" / FOLDER / "my fault.py"
    assert copy.read_bytes() == GOOD
    assert copy.stat().st_mode & 0o777 == 0o644
    (bind,) = [bind for bind in kit_binds(surroundings) if bind.target.endswith(FOLDER)]
    assert (bind.source / "my fault.py").read_bytes() == GOOD
    assert not bind.writable


def test_a_kit_without_plugin_has_none(tmp_path: Path) -> None:
    surround(tmp_path / "kit", find_interpreter(None), None, {}, {})
    assert not (tmp_path / "kit" / FOLDER).exists()


def test_a_run_with_a_plugin_is_stamped_and_cannot_become_golden(project: Project) -> None:
    file = project.folder / "fault.py"
    file.write_bytes(GOOD)
    stamp = f"--plugin fault.py (SHA-256 {hashlib.sha256(GOOD).hexdigest()[:12]})"
    assert project.record_golden().code == 0
    ran = project.check("--plugin", str(file))
    assert (ran.code, ran.verdict) == (0, "pass")  # the double loads no plugin
    assert ran.report["stamps"] == [stamp]
    assert f"--plugin {file}" in ran.report["reproduce"]
    assert stamp in ran.out
    refused = project.record_golden("--plugin", str(file))
    assert refused.code == 2
    assert f"leave out {stamp}" in refused.err


def test_a_plugin_that_cannot_be_used_is_a_usage_error_before_anything_is_launched(project: Project) -> None:
    file = project.folder / "fault.py"
    file.write_text("def install(launch:\n    pass\n")
    ran = project.check("--plugin", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.count("\n") == 1
    assert "line 1 is no Python" in ran.err
    assert not (project.folder / "runs").exists()
