"""Installs packages once, by uv where it is there and else by pip, and keeps them by content for later runs.

A layer is a folder of packages that were installed together, without their dependencies: exactly what the lock pins.
Its bytecode is compiled when it is made, and then nothing is written to it any more.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from packaging.utils import canonicalize_name

from validator.diagnose.bisect.packages import Package
from validator.diagnose.bisect.surveys import read_packages
from validator.errors import LaunchError, UsageError
from validator.execute.interpreter import Interpreter
from validator.report.text import printable

#: Where the same name and version may come from, beside ``--find-links``.
_INDEX_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")

#: Seconds that an installation may take: torch is several gigabytes.
_INSTALL_WITHIN = 3600


@dataclass(frozen=True, slots=True)
class Origins:
    """Where packages come from: what pip or uv is configured with, and folders of files."""

    find_links: tuple[Path, ...] = ()
    offline: bool = False

    def check(self) -> None:
        """Raise ``UsageError`` for a folder that is not there."""
        for folder in self.find_links:
            if not folder.is_dir():
                raise UsageError(f"{str(folder)!r} is no folder; --find-links takes a folder of wheels.")

    def files_of(self, package: Package) -> list[str]:
        """Digests of the files of this name and version in the folders: other content is another package."""
        found = []
        for file in sorted(file for folder in self.find_links for file in folder.iterdir()):
            name, _, rest = file.name.partition("-")
            if canonicalize_name(name) == package.name and rest.startswith(package.version) and file.is_file():
                found.append(hashlib.sha256(file.read_bytes()).hexdigest())
        return found


@final
@dataclass(frozen=True, slots=True)
class Store:
    """Layers below ``folder``, for ``interpreter``."""

    folder: Path
    interpreter: Interpreter
    origins: Origins

    def layer(self, packages: Sequence[Package]) -> list[Package]:
        """The same packages, installed. Raises ``LaunchError`` with the installer's last words."""
        target = self.folder / self._key(packages)
        if not target.is_dir():
            self._install(packages, target)
        found, _ = read_packages([target], str(target))
        if lacking := [package for package in packages if package.name not in found]:
            raise LaunchError(f"{target} lacks {lacking[0].name}, which was installed there; remove that folder.")
        return [replace(found[package.name], requirement=package.requirement) for package in packages]

    def _key(self, packages: Sequence[Package]) -> str:
        content = {
            "python": [self.interpreter.tag, *self.interpreter.version, os.uname().machine],
            "packages": sorted([package.requirement, *self.origins.files_of(package)] for package in packages),
            "index": [os.environ.get(name, "") for name in _INDEX_VARIABLES],
        }
        digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:20]
        return f"{packages[0].name}-{packages[0].version}-{digest}" if len(packages) == 1 else f"layer-{digest}"

    def _install(self, packages: Sequence[Package], target: Path) -> None:
        """Install into a folder beside it, which takes the name when it is whole: runs do not disturb each other."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".part-", dir=self.folder) as scratch:
                part = Path(scratch) / "packages"
                for command in self._commands(packages, Path(scratch), part):
                    self._run(command, packages)
                _make_read_only(part)
                try:
                    part.rename(target)
                except OSError:
                    if not target.is_dir():  # else another run was faster, with the same content
                        raise
        except OSError as error:
            raise LaunchError(
                f"{self.folder} cannot be written ({error.strerror}); free space, or change XDG_CACHE_HOME."
            ) from error

    def _commands(self, packages: Sequence[Package], scratch: Path, target: Path) -> Iterator[list[str]]:
        """By uv what lies in a folder goes past uv's cache, which takes a file by its name for what it once was."""
        uv = _find_uv()
        if uv is None:
            yield [*self._pip(target), "-r", str(_requirements(scratch / "all.txt", packages))]
            return
        local = [package for package in packages if self.origins.files_of(package)]
        others = [package for package in packages if package not in local]
        command = self._uv(uv, target)
        if local:
            yield [*command, "--cache-dir", str(scratch / "uv"), "-r", str(_requirements(scratch / "local.txt", local))]
        if others:
            yield [*command, "-r", str(_requirements(scratch / "others.txt", others))]

    def _uv(self, uv: str, target: Path) -> list[str]:
        return [
            uv, "pip", "install", "--quiet", "--no-deps", "--compile-bytecode", "--link-mode", "copy",
            "--python", str(self.interpreter.path), "--target", str(target), *self._find_links,
            *(["--offline"] if self.origins.offline else []),
        ]  # fmt: skip

    def _pip(self, target: Path) -> list[str]:
        if importlib.util.find_spec("pip") is None:
            raise LaunchError(
                "Neither uv nor pip is there to install packages with; pip install uv in this environment."
            )
        return [
            sys.executable, "-m", "pip", "--python", str(self.interpreter.path), "install", "--quiet",
            "--disable-pip-version-check", "--no-deps", "--target", str(target), *self._find_links,
            *(["--no-index"] if self.origins.offline else []),
        ]  # fmt: skip

    @property
    def _find_links(self) -> list[str]:
        return [word for folder in self.origins.find_links for word in ("--find-links", str(folder))]

    @staticmethod
    def _run(command: Sequence[str], packages: Sequence[Package]) -> None:
        what = packages[0].requirement.split()[0] if len(packages) == 1 else f"{len(packages)} packages"
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_INSTALL_WITHIN, check=False, stdin=subprocess.DEVNULL,
                env=_installer_environment(os.environ),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise LaunchError(f"{what} was not installed within {_INSTALL_WITHIN} s.") from None
        if done.returncode != 0:
            raise LaunchError(f"{what} cannot be installed: {_last_words(done.stderr or done.stdout)}.")


def cache_folder(caller: Mapping[str, str] = os.environ) -> Path:
    """Where layers are kept: in the user's cache."""
    cache = caller.get("XDG_CACHE_HOME") or Path(caller.get("HOME") or "~").expanduser() / ".cache"
    return Path(cache) / "megatron-change-validator" / "packages"


def _requirements(file: Path, packages: Sequence[Package]) -> Path:
    file.write_text("".join(f"{package.requirement}\n" for package in packages), encoding="utf-8")
    return file


def _find_uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.is_file() else shutil.which("uv")


def _installer_environment(caller: Mapping[str, str]) -> dict[str, str]:
    """The caller's, whose configuration of pip and uv counts, without what would add to an interpreter's path."""
    return {name: value for name, value in caller.items() if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}}


def _last_words(text: str) -> str:
    """The installer's reason in one line: what stands after its last ``error:``, else its last line."""
    plain = " ".join(text.split())
    for mark in ("ERROR: ", "error: ", "× "):
        if mark in plain:
            plain = plain.partition(mark)[2].replace("ERROR: ", "")
            break
    return printable(plain)[:400].rstrip(". ") or "the installer says nothing"


def _make_read_only(folder: Path) -> None:
    for place, folders, files in os.walk(folder):
        for name in (*files, *folders):
            path = Path(place, name)
            if not path.is_symlink():
                path.chmod(path.stat().st_mode & ~0o222)
