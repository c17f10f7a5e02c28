"""How an environment is put together from packages that lie elsewhere: by links, so that nothing is copied.

A folder that belongs to one package alone is linked as a whole. Where packages share a folder (namespaces), and where
it holds compiled libraries anywhere below, it is a real folder with links to files: a library finds others relative to
the folder in which it was loaded (``$ORIGIN`` in ld.so(8)), and must find those of its own environment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self, final

from validator.diagnose.bisect.packages import Package

_LIBRARY = re.compile(r"\.so(\.|$)")


@dataclass(frozen=True, slots=True)
class Link:
    """``place``, relative to where packages are imported from, is to be a link to ``target``."""

    place: str
    target: Path


@final
@dataclass(frozen=True, slots=True)
class Folders:
    """Folders of all packages that may come together: who has files in them, and which hold libraries."""

    owners: dict[PurePosixPath, set[str]]
    with_libraries: frozenset[PurePosixPath]

    @classmethod
    def of(cls, packages: Iterable[Package]) -> Self:
        owners: dict[PurePosixPath, set[str]] = {}
        libraries = set[PurePosixPath]()
        for package in packages:
            for name in package.files:
                file = PurePosixPath(name)
                for folder in file.parents[:-1]:
                    owners.setdefault(folder, set()).add(package.name)
                if _LIBRARY.search(file.name):
                    libraries.update(file.parents[:-1])
        return cls(owners, frozenset(libraries))

    def links(self, package: Package) -> Iterator[Link]:
        """All links of one package, with the bytecode that lies beside its sources."""
        assert package.root is not None
        linked: set[PurePosixPath] = set()
        for name in package.files:
            file = PurePosixPath(name)
            whole = next((folder for folder in reversed(file.parents[:-1]) if self._is_whole(folder)), None)
            if whole is None:
                yield Link(name, package.root / name)
                if file.suffix == ".py":
                    yield from _bytecode(file, package.root)
            elif whole not in linked:
                linked.add(whole)
                yield Link(whole.as_posix(), package.root / whole)

    def _is_whole(self, folder: PurePosixPath) -> bool:
        return len(self.owners.get(folder, ())) == 1 and folder not in self.with_libraries


def _bytecode(source: PurePosixPath, root: Path) -> Iterator[Link]:
    cache = source.parent / "__pycache__"
    for file in sorted((root / cache).glob(f"{source.stem}.*.pyc")):
        yield Link((cache / file.name).as_posix(), file)
