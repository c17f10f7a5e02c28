"""Proof that a store holds what was approved: every file, and the chain of ``supersedes`` through git's history."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from validator.errors import TrajectoryError
from validator.golden.files import RECORD
from validator.golden.history import Commit, NoHistoryError, Repository
from validator.golden.record import GoldenRecord
from validator.golden.store import GoldenStore


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify`` found: goldens looked at as (pipeline, hardware class), problems and remarks as sentences."""

    checked: tuple[tuple[str, str], ...]
    problems: tuple[str, ...]
    remarks: tuple[str, ...]

    @property
    def holds(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Version:
    """One commit that changed a golden: its record, ``None`` where the commit ``removed`` it or left it unreadable."""

    commit: Commit
    record: GoldenRecord | None
    removed: bool


def verify(store: GoldenStore, base: str | None = None) -> Verification:
    """Check every golden's files, and that each version in git names what it replaces.

    The history walked is that of HEAD along first parents, which on a main line is the order in which goldens were in
    force. On a branch, ``base`` (such as ``origin/main``) walks that one's instead, and checks the work tree against
    its tip: what a merge queue asks. A version that equals an earlier one is a return to what was approved, as ``git
    revert`` makes it. Without git the files alone are checked, and a remark says so. Raises ``NoHistoryError`` where
    ``base`` is no revision.
    """
    keys = store.keys()
    leftovers = sorted(path for path in store.root.glob("*/.*") if path.is_dir())
    remarks = [f"{leftover} was left by a recording that did not end; remove it." for leftover in leftovers]
    problems: list[str] = []
    repository: Repository | None = None
    try:
        repository = Repository.around(store.root)
        if repository.is_shallow:
            remarks.append("The clone is shallow: the chain is checked as far back as its history goes.")
    except NoHistoryError as error:
        remarks.append(f"History is not checked: {error}")
    for pipeline, hardware_class in keys:
        current: GoldenRecord | None = None
        try:
            golden = store.find(pipeline, hardware_class)
            current = golden.record if golden is not None else None
        except TrajectoryError as error:
            problems.append(str(error))
        if repository is not None:
            file = store.folder(pipeline, hardware_class) / RECORD
            problems += check_chain(repository, file, current, base or "HEAD")
    if not keys:
        remarks.append(f"{store.root} holds no golden.")
    return Verification(keys, tuple(problems), tuple(remarks))


def log(store: GoldenStore, pipeline: str, hardware_class: str) -> tuple[Version, ...]:
    """Commits that changed one golden, newest first; raises ``NoHistoryError`` outside a git work tree."""
    repository = Repository.around(store.root)
    file = store.folder(pipeline, hardware_class) / RECORD
    return tuple(_version(repository, commit, file) for commit in repository.commits(file))


def check_chain(repository: Repository, file: Path, current: GoldenRecord | None, base: str) -> list[str]:
    """Sentences about versions of ``file`` (a golden.json) that do not name what they replace; empty where all do.

    ``current`` is the record on disk, which need not be committed. A golden that was removed ends its chain. Raises
    ``NoHistoryError`` where ``base`` is no revision.
    """
    versions = [_version(repository, commit, file) for commit in repository.commits(file, base, first_parent=True)]
    problems = [
        f"{file} is no valid record in commit {version.commit.identity[:12]}; its history cannot be trusted."
        for version in versions
        if version.record is None and not version.removed
    ]
    chain = [(f"commit {version.commit.identity[:12]}", version.record) for version in versions]
    if current is not None:
        chain.insert(0, ("the work tree", current))
    past: set[str] = set()
    for (_, older), (where, newer) in pairwise(reversed(chain)):
        if older is not None:
            past.add(older.digest)
        if older is None or newer is None or newer.digest in past or older.digest in newer.lineage:
            continue
        said = "none" if newer.supersedes is None else newer.supersedes[:12]
        problem = f"{file} in {where} supersedes {said} and replaces {older.digest[:12]}"
        problems.append(f"{problem}; record it anew on top of what it replaces.")
    return problems


def _version(repository: Repository, commit: Commit, file: Path) -> Version:
    text = repository.read(commit.identity, file)
    if text is None:
        return Version(commit, None, removed=True)
    try:
        return Version(commit, GoldenRecord.from_text(text, f"{commit.identity}:{file}"), removed=False)
    except TrajectoryError:
        return Version(commit, None, removed=False)
