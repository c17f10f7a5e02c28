"""The two sets as a person names them, lock files or environments, made ready to be put together."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from validator.diagnose.bisect.links import Folders
from validator.diagnose.bisect.locks import read_lock
from validator.diagnose.bisect.packages import Change, Package, PackageSet, changes_between
from validator.diagnose.bisect.store import Origins, Store
from validator.diagnose.bisect.surveys import Survey, survey
from validator.errors import UsageError

#: What a lock file's name may end in, whether it is executable or not.
_LOCKS = {".txt", ".lock", ".in"}


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sets with every package in reach, what changes between them, and the Python that all are built on."""

    before: PackageSet
    after: PackageSet
    python: Survey
    folders: Folders

    @property
    def changes(self) -> tuple[Change, ...]:
        """What is not the same, by name."""
        return changes_between(self.before, self.after)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know of how the sets were read."""
        return tuple(dict.fromkeys((*self.before.remarks, *self.after.remarks)))


def read_sides(
    before: str, after: str, *, python: str | None, base: str | None, origins: Origins, cache: Path
) -> Sides:
    """Read both, and install what is nowhere yet.

    ``python`` is for locks: what is installed there in a version that they pin is taken from there. ``base`` is an
    environment from which both sides get the packages that neither names. Raises ``UsageError`` for what cannot be
    read, ``LaunchError`` for what cannot be installed.
    """
    origins.check()
    locked = [_is_lock(each) for each in (before, after)]
    if python is not None and not any(locked):
        raise UsageError("--python is for lock files; two environments have a Python of their own: leave it out.")
    surveys = {
        each: survey(each, hashed=not any(locked))
        for each, is_lock in zip((before, after), locked, strict=True)
        if not is_lock
    }
    underlying = survey(base) if base is not None else None
    chosen = survey(python or sys.executable) if any(locked) else surveys[before]
    every_survey = [chosen, *surveys.values(), *([underlying] if underlying is not None else [])]
    _insist_on_one_python(every_survey)
    sets = [
        surveys[each].found if each in surveys else read_lock(Path(each), chosen.markers) for each in (before, after)
    ]
    sources = [each.found for each in (*surveys.values(), underlying, chosen) if each is not None]
    if underlying is not None:
        sets = _on(underlying.found, sets)
    store = Store(cache, chosen.interpreter, origins)
    sets = _in_reach(sets, sources, store)
    every = (package for each in (*sets, *sources) for package in each.packages.values())
    sets[0] = replace(sets[0], remarks=(*sets[0].remarks, *_other_releases(every_survey)))
    return Sides(sets[0], sets[1], chosen, Folders.of(every))


def _is_lock(given: str) -> bool:
    file = Path(given)
    if not file.exists():
        raise UsageError(f"{given!r} does not exist; name a lock file or an environment.")
    return file.is_file() and (file.suffix in _LOCKS or not os.access(file, os.X_OK))


def _insist_on_one_python(surveys: Iterable[Survey]) -> None:
    first, *others = surveys
    for other in others:
        if other.interpreter.tag != first.interpreter.tag:
            one, two = (".".join(map(str, each.interpreter.version[:2])) for each in (first, other))
            raise UsageError(
                f"{first.found.label} is of Python {one} and {other.found.label} of {two}, which cannot exchange "
                "packages; make both with one Python (--python for locks)."
            )


def _other_releases(surveys: list[Survey]) -> Iterator[str]:
    """Remarks on environments of another release of Python, which is not bisected."""
    first = ".".join(map(str, surveys[0].interpreter.version))
    for other in surveys[1:]:
        version = ".".join(map(str, other.interpreter.version))
        if version != first:
            yield f"{other.found.label} is of Python {version}; all sets are launched with {first}."


def _on(base: PackageSet, sets: list[PackageSet]) -> list[PackageSet]:
    """Both sets with the packages of ``base`` that neither names."""
    named = {name for each in sets for name in each.packages}
    rest = {name: package for name, package in base.packages.items() if name not in named}
    return [replace(each, packages={**rest, **each.packages}, remarks=(*base.remarks, *each.remarks)) for each in sets]


def _in_reach(sets: list[PackageSet], sources: list[PackageSet], store: Store) -> list[PackageSet]:
    """Both sets with files for every package: of an environment at hand, else installed."""
    found: dict[str, Package] = {}
    wanted = {package.requirement: package for each in sets for package in each.packages.values() if not package.root}
    for requirement, package in wanted.items():
        here = (source.packages.get(package.name) for source in sources)
        match = next((other for other in here if other is not None and other.is_like(package)), None)
        if match is not None:
            found[requirement] = match
    lacking = [package for requirement, package in sorted(wanted.items()) if requirement not in found]
    layers: dict[
        tuple[bool, ...], dict[str, Package]
    ] = {}  # what both sides have is one layer, what either has another
    for package in lacking:
        layers.setdefault(tuple(_has(each, package) for each in sets), {}).setdefault(package.name, package)
    for layer in layers.values():
        found |= {package.requirement: package for package in store.layer(list(layer.values()))}
    return [
        replace(each, packages={name: _found(package, found) for name, package in each.packages.items()})
        for each in sets
    ]


def _has(each: PackageSet, package: Package) -> bool:
    other = each.packages.get(package.name)
    return other is not None and other.is_like(package)


def _found(package: Package, found: Mapping[str, Package]) -> Package:
    return package if package.root is not None else found[package.requirement]
