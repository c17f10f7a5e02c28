"""scripts/create-environment on machines that have this or that Python, or none: PATH holds stand-ins only."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "scripts" / "create-environment"
BASH = shutil.which("bash") or "/bin/bash"

#: Answers like a Python of the accepted versions whose distribution left out venv (as Debian's does).
WITHOUT_VENV = """#!/bin/sh
case "$2" in *ensurepip*) exit 1;; *print*) echo 3.12;; esac
exit 0
"""
#: A version manager's stub without a Python behind it.
STUB = "#!/bin/sh\necho 'python3.13: command not found' >&2\nexit 127\n"
TOO_OLD = '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.11.2" && exit 0\nexit 1\n'
RECORDER = '#!/bin/sh\necho "$0 $*" >>"{log}"\n'


class Machine:
    """A PATH of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "bin"
        self.path.mkdir()
        self.target = folder / "environment"
        self.log = folder / "log"
        self.has("rm", f'#!/bin/sh\nexec {shutil.which("rm")} "$@"\n')

    def has(self, name: str, text: str) -> None:
        (self.path / name).write_text(text.replace("{log}", str(self.log)))
        (self.path / name).chmod(0o755)

    def create(self) -> subprocess.CompletedProcess[str]:
        command: list[str | Path] = [BASH, SCRIPT, self.target]
        return subprocess.run(command, env={"PATH": str(self.path)}, capture_output=True, text=True, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_there_says_what_is_missing(machine: Machine) -> None:
    ran = machine.create()
    assert ran.returncode == 1
    for part in ("Python 3.12", "Python 3.13", "uv", "python3 here: none", "apt-get install python3.12-venv"):
        assert part in ran.stderr


def test_a_python_that_is_too_old_is_named(machine: Machine) -> None:
    machine.has("python3", TOO_OLD)
    ran = machine.create()
    assert ran.returncode == 1
    assert "python3 here: Python 3.11.2" in ran.stderr


def test_a_python_without_venv_says_how_to_get_it(machine: Machine) -> None:
    machine.has("python3", WITHOUT_VENV)
    ran = machine.create()
    assert ran.returncode == 1
    assert "python3 is Python 3.12 but lacks the venv module" in ran.stderr
    assert "apt-get install python3.12-venv" in ran.stderr


def test_uv_is_used_where_no_python_is(machine: Machine) -> None:
    machine.has("python3", TOO_OLD)
    machine.has("python3.12", WITHOUT_VENV)
    machine.has("uv", RECORDER)
    assert machine.create().returncode == 0
    assert machine.log.read_text().split()[1:] == [
        "venv",
        "--quiet",
        "--seed",
        "--python",
        ">=3.12,<3.14",
        str(machine.target),
    ]


def test_a_stub_is_passed_over(machine: Machine) -> None:
    machine.has("python3", TOO_OLD)
    machine.has("python3.13", STUB)
    machine.has(
        "python3.12", f'#!/bin/sh\n[ "$1" = -m ] && echo "$*" >>"{machine.log}" && exit 0\nexec {sys.executable} "$@"\n'
    )
    assert machine.create().returncode == 0
    assert machine.log.read_text() == f"-m venv {machine.target}\n"


def test_an_environment_that_works_is_kept(machine: Machine) -> None:
    (machine.target / "bin").mkdir(parents=True)
    (machine.target / "bin" / "python").symlink_to(sys.executable)
    (machine.target / "kept").touch()
    # The link leads to a Python of the accepted versions that has pip: the one that runs this test.
    assert machine.create().returncode == 0
    assert (machine.target / "kept").exists()


def test_a_broken_environment_is_made_anew(machine: Machine) -> None:
    machine.target.mkdir()
    (machine.target / "pyvenv.cfg").touch()
    machine.has("uv", RECORDER)
    assert machine.create().returncode == 0
    assert not machine.target.exists()  # removed; the stand-in for uv makes none


def test_a_folder_that_is_no_environment_is_left_alone(machine: Machine) -> None:
    machine.target.mkdir()
    (machine.target / "thesis.txt").touch()
    ran = machine.create()
    assert ran.returncode == 1
    assert "is not a virtual environment" in ran.stderr
    assert (machine.target / "thesis.txt").exists()
