"""What is imported when: ``--help`` starts without what only commands need, and each part imports only parts below."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Packages that take long to import, and ``validator``'s own parts that would bring them.
HEAVY = ("torch", "megatron", "numpy", "yaml", "jsonschema", "rich", "fastapi", "docker")

HELP = """
import json, sys
from validator.cli import main
status = "returned"
try:
    main(sys.argv[1:])
except SystemExit as end:
    status = end.code
print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["--help"], ["check", "--help"], ["golden", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    ran = subprocess.run([sys.executable, "-c", HELP, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "usage" in ran.stdout.lower()
    status, modules = json.loads(ran.stderr.splitlines()[-1])
    assert status in ("returned", 0, None)
    assert [name for name in HEAVY if name in modules] == []


def test_a_launch_brings_no_package_of_ours_but_xxhash() -> None:
    """The launch's side of trajectories and requests starts where neither numpy nor yaml is installed."""
    code = (
        "import sys, validator.trajectory.writer, validator.execute.request\n"
        "print([name for name in ('numpy', 'yaml', 'torch') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_each_part_imports_only_parts_below_it() -> None:
    linter = Path(sys.executable).with_name("lint-imports")
    assert linter.exists(), "import-linter is not installed; make setup does it"
    ran = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_versions_are_pinned_by_name_alone() -> None:
    """constraints.txt names every direct dependency exactly, and no host, path or hash."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    names = {name.split(">")[0].split("=")[0].split("[")[0].lower().replace("_", "-") for name in wanted}
    assert names <= {pin.lower().replace("_", "-") for pin in pins}
    assert pins["torch"] == "2.14.1"
    assert pins["megatron-core"] == "0.19.2"
    assert not any("/" in line or "@" in line or "--" in line for line in lines)
