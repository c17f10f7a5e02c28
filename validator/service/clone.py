"""Commits of changes, fetched as data beside the base revision's checkout, which is never written to."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import final

from validator.errors import ValidatorError
from validator.golden.history import NoHistoryError, Repository

_SECONDS = 120.0
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

#: What git says where the server was reached and has no such commit.
_UNKNOWN = ("not our ref", "couldn't find remote ref", "unadvertised object", "no such remote ref")


class CloneError(ValidatorError):
    """A commit cannot be had; ``may_come`` where another try is of use."""

    def __init__(self, sentence: str, *, may_come: bool = False) -> None:
        super().__init__(sentence)
        self.may_come = may_come


@final
class Clone:
    """The history around ``root``, the base revision's folder, and what is fetched from its ``origin`` into ``folder``.

    Fetching takes the checkout's own way to its origin, credentials included.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder = folder
        self._root = root
        self._lock = threading.Lock()

    def with_commits(self, *commits: str) -> Path:
        """The project's folder in a repository that has all ``commits`` (in full); nothing is checked out there.

        Raises ``CloneError``.
        """
        wrong = next((commit for commit in commits if not _COMMIT.fullmatch(commit)), None)
        if wrong is not None:
            raise CloneError(f"{wrong[:80]!r} is no full commit.")
        try:
            top = Repository.around(self._root).top
        except NoHistoryError as error:
            raise CloneError(f"The base revision is no git checkout: {error}") from error
        with self._lock:
            self._make(top)
            missing = [commit for commit in dict.fromkeys(commits) if not self._has(commit)]
            if missing:
                self._fetch(top, missing)
        place = self._folder / self._root.resolve().relative_to(top.resolve())
        place.mkdir(parents=True, exist_ok=True)
        return place

    def base(self) -> str:
        """The commit of the base revision. Raises ``CloneError``."""
        try:
            return Repository.around(self._root).resolve("HEAD")
        except NoHistoryError as error:
            raise CloneError(f"The base revision is no git checkout: {error}") from error

    def _make(self, top: Path) -> None:
        try:
            if not (self._folder / ".git" / "HEAD").exists():
                self._folder.mkdir(parents=True, exist_ok=True)
                _git(self._folder, "init", "-q")
            objects = (top / _git(top, "rev-parse", "--git-path", "objects").strip()).resolve()
            alternates = self._folder / ".git" / "objects" / "info" / "alternates"
            if not alternates.exists() or alternates.read_text(encoding="utf-8") != f"{objects}\n":
                alternates.write_text(f"{objects}\n", encoding="utf-8")
        except OSError as error:
            raise CloneError(f"{self._folder} cannot be written: {error.strerror or error}.", may_come=True) from error

    def _has(self, commit: str) -> bool:
        try:
            _git(self._folder, "cat-file", "-e", f"{commit}^{{commit}}")
        except CloneError:
            return False
        return True

    def _fetch(self, top: Path, commits: list[str]) -> None:
        """Objects go into the own folder; no ref is made, and the checkout stays as it is."""
        _git(top, "remote", "get-url", "origin")
        places = {
            "GIT_OBJECT_DIRECTORY": str(self._folder / ".git" / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(
                (top / _git(top, "rev-parse", "--git-path", "objects").strip()).resolve()
            ),
        }
        words = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "origin", *commits)
        try:
            _git(top, "-c", "gc.auto=0", "-c", "maintenance.auto=false", *words, variables=places)
        except CloneError as error:
            is_final = any(said in str(error) for said in _UNKNOWN)
            raise CloneError(str(error), may_come=not is_final) from error


def _git(folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"} | dict(variables or {})
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, errors="replace", env=environment,
            timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise CloneError(f"git could not be run: {error}.", may_come=True) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        said = next((line for line in lines if line.startswith(("fatal: ", "error: "))), lines[-1])
        verb = next((word for word in words if not word.startswith("-") and "=" not in word), words[0])
        raise CloneError(f"git {verb} failed: {said.rstrip('.')}.")
    return done.stdout
