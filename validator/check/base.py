"""The base revision of a change: where policy, waivers and goldens of its check come from (DESIGN.md 9)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from validator.errors import UsageError
from validator.golden import GoldenStore
from validator.golden.history import Repository
from validator.pipeline import Pipeline, PolicyChange, load_pipeline, policy_changes, read_pipeline


@final
@dataclass(frozen=True, slots=True)
class Base:
    """One pipeline as the base revision has it.

    ``revision`` is the commit in full. ``goldens`` is the store of that commit, ``parted`` that of the commit at which
    the change parted from it. ``is_new`` says that the base has no such pipeline: then the change's own policy is all
    there is.
    """

    revision: str
    goldens: GoldenStore
    parted: GoldenStore
    is_new: bool
    policy_changes: tuple[PolicyChange, ...]

    def changes_golden(self, head: GoldenStore, pipeline: str, hardware_class: str) -> bool:
        """Whether the change itself adds, replaces or removes this golden, in any byte."""
        folders = (store.folder(pipeline, hardware_class) for store in (self.parted, head))
        before, after = map(_contents, folders)
        return before != after


def read_base(name: str, root: Path, revision: str, folder: Path, head: str = "HEAD") -> tuple[Pipeline, Base]:
    """The pipeline with the work tree's computation and the base's policy, and the base.

    What is read from git is put into ``folder``. Raises ``UsageError`` where ``revision`` names no commit, or where the
    base's policy does not fit the changed computation.
    """
    own = load_pipeline(name, root)
    if own.file.resolve().parent != (root / "pipelines").resolve():
        raise UsageError(f"{own.file} is not in {root / 'pipelines'}; --base takes pipelines that git keeps there.")
    repository = Repository.around(root)
    commit = repository.resolve(revision)
    parted = repository.merge_base(commit, head) if repository.has_commits else commit
    goldens, then = GoldenStore(folder / "golden"), GoldenStore(folder / "parted")
    for store, at in ((goldens, commit), (then, parted)):
        repository.extract(at, root / "golden" / own.name, store.root / own.name)
    repository.extract(commit, root / "pipelines", folder / "pipelines")
    file = folder / "pipelines" / own.file.name
    if not file.is_file():
        return own, Base(commit, goldens, then, is_new=True, policy_changes=())
    combined = read_pipeline(own.file, policy_from=file)
    changes = policy_changes(combined.policy, own.policy)
    return replace(own, policy=combined.policy), Base(commit, goldens, then, is_new=False, policy_changes=changes)


def read_base_of(name: str, root: Path, revision: str, folder: Path, head: str) -> tuple[Pipeline, Base, GoldenStore]:
    """Like :func:`read_base` for a commit ``head`` that is in the clone and not checked out; also its goldens."""
    repository = Repository.around(root)
    commit, tip = repository.resolve(revision), repository.resolve(head)
    parted = repository.merge_base(commit, tip)
    stores = {}
    for label, at in (("golden", commit), ("parted", parted), ("head", tip)):
        stores[label] = GoldenStore(folder / label / "golden")
        repository.extract(at, root / "golden" / name, stores[label].root / name)
        repository.extract(at, root / "pipelines", folder / label / "pipelines")
    own = load_pipeline(name, folder / "head")
    file = folder / "golden" / "pipelines" / own.file.name
    changes: tuple[PolicyChange, ...] = ()
    pipeline = own
    if file.is_file():
        pipeline = read_pipeline(own.file, policy_from=file)
        changes = policy_changes(pipeline.policy, own.policy)
    base = Base(commit, stores["golden"], stores["parted"], is_new=not file.is_file(), policy_changes=changes)
    return pipeline, base, stores["head"]


def _contents(folder: Path) -> dict[str, str]:
    """Digest by name of what lies below; a link counts as itself."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = "link"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found
