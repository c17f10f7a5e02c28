"""Packages, sets of them, and what changes from one set to another. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.utils import canonicalize_version

#: This project's own package: it comes with a launch and is never under test.
OURS = "megatron-change-validator"


@dataclass(frozen=True, slots=True)
class Package:
    """One package as a set has it; ``name`` is normalised.

    ``root`` is the folder that ``files`` lie in, ``None`` where it is still to be installed as ``requirement`` says:
    one line, pinned, with its hashes. ``identity`` tells two of the same version apart; empty where it is not known.
    """

    name: str
    version: str
    root: Path | None = None
    files: tuple[str, ...] = field(default=(), repr=False, compare=False)
    requirement: str = ""
    identity: str = ""

    def is_like(self, other: Package) -> bool:
        """Whether the two are the same, as far as both are known."""
        if canonicalize_version(self.version) != canonicalize_version(other.version):
            return False
        return not self.identity or not other.identity or self.identity == other.identity


@dataclass(frozen=True, slots=True)
class PackageSet:
    """All packages of one side by name. ``label`` is what a person calls it; ``remarks`` are for that person."""

    label: str
    packages: Mapping[str, Package]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One package that is added, removed, or another one."""

    name: str
    before: Package | None
    after: Package | None

    @property
    def words(self) -> str:
        """``einops 0.8.1 -> 0.8.2``."""
        if self.before is None:
            return f"{self.name} added, {self._after}"
        if self.after is None:
            return f"{self.name} removed, {self._before}"
        if self._before == self._after:
            return f"{self.name} {self._before}, other files"
        return f"{self.name} {self._before} -> {self._after}"

    @property
    def _before(self) -> str:
        return self.before.version if self.before is not None else ""

    @property
    def _after(self) -> str:
        return self.after.version if self.after is not None else ""


def changes_between(before: PackageSet, after: PackageSet) -> tuple[Change, ...]:
    """What is not the same, by name."""
    changes = []
    for name in sorted({*before.packages, *after.packages}):
        left, right = before.packages.get(name), after.packages.get(name)
        if left is None or right is None or not left.is_like(right):
            changes.append(Change(name, left, right))
    return tuple(changes)


def apply(before: PackageSet, changes: Iterable[Change]) -> dict[str, Package]:
    """The packages of ``before`` with ``changes`` made, by name."""
    packages = dict(before.packages)
    for change in changes:
        packages.pop(change.name, None)
        if change.after is not None:
            packages[change.name] = change.after
    return packages
