"""What a program says that is asked as an interpreter: a whole answer, or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from validator.errors import UsageError
from validator.execute.doctor import PACKAGES, package_finding
from validator.execute.image_doctor import _understand
from validator.execute.interpreter import find_interpreter, understand

GOOD: dict[str, Any] = {"version": [3, 12, 1], "tag": "cpython-312", "packages": {"torch": "2.14.1+cu130"}}

CHANGED: dict[str, dict[str, Any]] = {
    "two numbers": {"version": [3, 12]},
    "a large number": {"version": [3, 12, 1000]},
    "a negative number": {"version": [3, 12, -1]},
    "a broken number": {"version": [3, 12, 1.5]},
    "a truth": {"version": [3, 12, True]},
    "a version of text": {"version": "312"},
    "a tag of none": {"tag": None},
    "a long tag": {"tag": "x" * 101},
    "packages in a list": {"packages": ["torch"]},
    "a package of numbers": {"packages": {"torch": 2}},
    "a long version": {"packages": {"torch": "9" * 5000}},
}

SENSELESS = {
    "nothing": "",
    "text": "Python 3.12",
    "a list": "[]",
    "deep": "[" * 100_000,
    "no version": json.dumps({"tag": "x", "packages": {}}),
    "infinite": '{"version": [1e999, 0, 0], "tag": "x", "packages": {}}',
    "no number": '{"version": [NaN, 0, 0], "tag": "x", "packages": {}}',
    "digits": f'{{"version": [{"9" * 5000}, 0, 0], "tag": "x", "packages": {{}}}}',
} | {name: json.dumps(GOOD | changed) for name, changed in CHANGED.items()}


@pytest.mark.parametrize("told", SENSELESS.values(), ids=SENSELESS)
def test_anything_but_an_answer_is_none(tmp_path: Path, told: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        understand(Path("python3"), told, ["torch"])
    assert _understand("python3", told.encode()) is None
    (tmp_path / "told").write_text(told)
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat '{tmp_path}/told'\n")
    python.chmod(0o755)
    with pytest.raises(UsageError, match="does not answer as a Python interpreter"):
        find_interpreter(str(python), ("torch",))


def test_what_it_leaves_out_is_not_installed_and_what_it_adds_is_not_heard() -> None:
    found = understand(Path("python3"), "noise\n" + json.dumps(GOOD | {"more": 1}), ["torch", "einops"])
    assert (found.version, found.tag) == ((3, 12, 1), "cpython-312")
    assert found.packages == {"torch": "2.14.1+cu130", "einops": None}


def test_what_it_says_steers_no_terminal() -> None:
    told = json.dumps(GOOD | {"packages": {"torch": "2\x1b[31m"}})
    assert understand(Path("python3"), told, ["torch"]).packages == {"torch": r"2\x1b[31m"}


@pytest.mark.parametrize("packages", [{}, {"torch": "9" * 100}])
def test_every_answer_that_is_taken_can_be_looked_at(packages: dict[str, str]) -> None:
    found = _understand("python3", json.dumps(GOOD | {"packages": packages}).encode())
    assert found is not None
    for name, (oldest, purpose) in PACKAGES.items():
        assert package_finding(found, name, oldest, purpose).name == name
