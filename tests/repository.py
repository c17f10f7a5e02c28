"""A real git repository for tests."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Repo:
    """A work tree with an author of its own, untouched by the machine's git settings."""

    folder: Path

    @classmethod
    def create(cls, folder: Path) -> Repo:
        repo = cls(folder)
        repo.git("init", "-q", "-b", "main")
        return repo

    def git(self, *words: str) -> str:
        """Run git; returns what it prints, without the last line feed."""
        names = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@team.example", "GIT_COMMITTER_NAME": "Ann"}
        nothing = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        variables = kept | names | nothing | {"GIT_COMMITTER_EMAIL": "ann@team.example"}
        command = ["git", "-C", str(self.folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, env=variables, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.rstrip("\n")

    def commit(self, message: str) -> str:
        """Commit everything there is; returns the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def write(self, path: str, text: str) -> None:
        """Write a file of the work tree."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
