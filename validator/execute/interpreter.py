"""The Python that runs a launch: the user's, not ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validator.errors import UsageError
from validator.report.text import printable

#: The oldest Python that a launch runs on: megatron-core 0.19 needs it.
OLDEST = (3, 12)

#: What an interpreter tells about itself, and the versions of the packages named on its command line.
QUESTION = """
import json, sys
from importlib.metadata import PackageNotFoundError, version
def found(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
print(json.dumps({"version": list(sys.version_info[:3]), "tag": sys.implementation.cache_tag,
                  "packages": {name: found(name) for name in sys.argv[1:]}}))
"""

#: Longest text of an answer that is taken for a version or a tag, in characters.
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that was asked about itself. ``packages`` maps each name asked for to its version, or to ``None``."""

    path: Path
    version: tuple[int, int, int]
    tag: str
    packages: dict[str, str | None]

    @property
    def shares_extensions(self) -> bool:
        """Whether compiled modules of the product's own interpreter load in this one."""
        return self.tag == sys.implementation.cache_tag


def understand(path: Path, told: str, asked: Sequence[str]) -> Interpreter:
    """What an interpreter said of itself, in the last line of ``told``; a package that it left out is not installed.

    It may be a program that only plays one: raises ``ValueError`` for anything but a whole answer to the question.
    """
    try:
        facts: Any = json.loads(told.strip().rpartition("\n")[2])
        version, tag, packages = facts["version"], facts["tag"], facts["packages"]
        found = {name: packages.get(name) for name in asked}
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError("not an answer to what was asked") from error
    if not (isinstance(version, list) and len(version) == 3 and all(map(_is_number, version))):
        raise ValueError("no version of three numbers")
    if not all(_is_text(text) for text in (tag, *(text for text in found.values() if text is not None))):
        raise ValueError("no short text")
    major, minor, patch = version
    texts = {name: None if text is None else printable(text) for name, text in found.items()}
    return Interpreter(path, (major, minor, patch), printable(tag), texts)


def _is_number(part: object) -> bool:
    return type(part) is int and 0 <= part < 1000


def _is_text(text: object) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST


def find_interpreter(option: str | None, packages: tuple[str, ...] = ()) -> Interpreter:
    """Ask the interpreter that ``--python`` names (a path, a name on PATH, an environment's folder), else our own.

    Raises ``UsageError`` where there is none, where it does not start, or where it is too old.
    """
    path = _resolve(option)
    try:
        answer = subprocess.run(
            [str(path), "-c", QUESTION, *packages],
            capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL,
            env=asked_environment(),
        )  # fmt: skip
        found = understand(path, answer.stdout, packages)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise UsageError(
            f"{path} does not answer as a Python interpreter ({type(error).__name__}); change --python."
        ) from error
    if found.version < OLDEST:
        version, oldest = ".".join(map(str, found.version)), ".".join(map(str, OLDEST))
        raise UsageError(f"{path} is Python {version}, and a launch needs {oldest} or newer; change --python.")
    return found


def asked_environment() -> dict[str, str]:
    """The caller's variables without those that add to an interpreter's path."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    return kept | {"PYTHONSAFEPATH": "1", "PYTHONNOUSERSITE": "1"}


def _resolve(option: str | None) -> Path:
    if option is None:
        return Path(sys.executable)
    given = Path(option).expanduser()
    if given.is_dir():
        given = given / "bin" / "python"
    found = shutil.which(str(given))
    if found is None:
        raise UsageError(f"{option!r} is no executable file; --python takes an interpreter or an environment's folder.")
    return Path(os.path.abspath(found))  # not resolved: a link into an environment is what makes it that environment
