"""A golden's past, as git has it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from validator.errors import UsageError

_SECONDS = 60
_FIELD, _END = "\x1f", "\x1e"


class NoHistoryError(UsageError):
    """There is no git here, or the folder belongs to no git work tree."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit; ``date`` is its author's, ISO 8601."""

    identity: str
    date: str
    author: str
    subject: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A git work tree, asked through the git program; it is never written to."""

    top: Path

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The work tree that holds ``folder``; raises ``NoHistoryError``."""
        if not folder.is_dir():
            raise NoHistoryError(f"{folder} is no folder, so no git history can be read.")
        return cls(Path(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel")).rstrip("\n")))

    @property
    def is_shallow(self) -> bool:
        """History ends early: an older past is not here."""
        return _git(self.top, "rev-parse", "--is-shallow-repository").strip() == b"true"

    @property
    def has_commits(self) -> bool:
        """HEAD is a commit: something was committed at all."""
        try:
            _git(self.top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        except NoHistoryError:
            return False
        return True

    def ignores(self, path: Path) -> bool:
        """A .gitignore keeps ``path`` out of git."""
        try:
            _git(self.top, "check-ignore", "--quiet", self._relative(path))
        except NoHistoryError:
            return False
        return True

    def commits(self, file: Path, revision: str = "HEAD", *, first_parent: bool = False) -> list[Commit]:
        """Commits in the past of ``revision`` that changed ``file``, newest first.

        With ``first_parent`` branches that were merged are left out: a merge counts as the one change that it made.
        Raises ``NoHistoryError`` where ``revision`` is none.
        """
        if revision == "HEAD" and not self.has_commits:
            return []
        form = _FIELD.join(["%H", "%aI", "%an", "%s"]) + _END
        walk = ["--first-parent"] if first_parent else []
        arguments = ["log", "--topo-order", "--no-patch", f"--format={form}", *walk, "--end-of-options", revision, "--"]
        text = _git(self.top, *arguments, self._relative(file)).decode(errors="replace")
        return [Commit(*fields) for entry in text.split(_END) if len(fields := entry.strip("\n").split(_FIELD)) == 4]

    def read(self, revision: str, file: Path) -> str | None:
        """The text of ``file`` at ``revision``; ``None`` where it is not there."""
        try:
            return _git(self.top, "show", f"{revision}:{self._relative(file)}").decode(errors="replace")
        except NoHistoryError:
            return None

    def resolve(self, revision: str) -> str:
        """The commit that ``revision`` names, 40 or 64 hexadecimal digits; raises ``NoHistoryError``."""
        try:
            found = _git(self.top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        except NoHistoryError:
            raise NoHistoryError(f"{revision!r} names no commit in {self.top}; fetch it, or name another.") from None
        return found.decode().strip()

    def merge_base(self, base: str, head: str) -> str:
        """The commit at which ``head`` parted from ``base``; ``base`` itself where the history does not tell."""
        try:
            return _git(self.top, "merge-base", base, head).decode().strip()
        except NoHistoryError:
            return base

    def changed(self, before: str, after: str) -> dict[str, str]:
        """Paths from the top that differ between two commits -> ``A`` added, ``D`` deleted, ``M`` modified."""
        text = os.fsdecode(_git(self.top, "diff", "--name-status", "--no-renames", "-z", before, after, "--"))
        fields = text.split("\0")
        return {path: status[:1] for status, path in zip(fields[::2], fields[1::2], strict=False)}

    def extract(self, revision: str, folder: Path, target: Path) -> None:
        """Write the files below ``folder`` at ``revision`` to ``target``; what is no plain file there is left out."""
        prefix = self._relative(folder) + "/"
        entries = _git(self.top, "ls-tree", "-r", "-z", revision, "--", prefix)
        for entry in filter(None, os.fsdecode(entries).split("\0")):
            mode, _, name = entry.partition("\t")
            if not mode.startswith("100"):
                continue  # a link or a submodule: nothing of ours is one
            path = target / name.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_git(self.top, "show", f"{revision}:{name}"))

    def _relative(self, path: Path) -> str:
        return path.resolve().relative_to(self.top.resolve()).as_posix()


def _git(folder: Path, *arguments: str) -> bytes:
    """Standard output of git in ``folder``, without the caller's GIT_ variables; raises ``NoHistoryError``."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "-C", str(folder), "-c", "core.quotePath=false", "-c", "log.showSignature=false", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, env=environment, timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoHistoryError(f"git could not be run ({error}); install it to read a golden's history.") from error
    if done.returncode != 0:
        problem = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise NoHistoryError(f"git {arguments[0]} failed in {folder}: {problem[-1].rstrip('.')}.")
    return done.stdout
