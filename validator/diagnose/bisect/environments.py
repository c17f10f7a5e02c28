"""Builds the environments in between: a Python of their own, and links to packages that are only read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import final

from validator.diagnose.bisect.links import Folders
from validator.diagnose.bisect.packages import Package
from validator.errors import LaunchError


@final
@dataclass(frozen=True, slots=True)
class Environments:
    """Environments below ``folder``. ``base`` is the Python that they are built on, of ``version``; ``folders`` are
    those of every package that any of them may hold.
    """

    folder: Path
    base: Path
    version: tuple[int, int, int]
    folders: Folders

    def build(self, name: str, packages: Collection[Package]) -> Path:
        """A new environment with exactly these packages; returns its Python. Raises ``LaunchError``."""
        place = self.folder / name
        major, minor, _ = self.version
        library = place / "lib" / f"python{major}.{minor}" / "site-packages"
        try:
            library.mkdir(parents=True)
            (place / "bin").mkdir()
            for program in ("python", "python3"):
                (place / "bin" / program).symlink_to(self.base)
            (place / "pyvenv.cfg").write_text(
                f"home = {self.base.parent}\ninclude-system-site-packages = false\n"
                f"version = {'.'.join(map(str, self.version))}\n",
                encoding="utf-8",
            )
            self._link(library, packages)
        except OSError as error:
            why = f"{error.strerror} ({error.filename})"
            raise LaunchError(f"{place} cannot be built: {why}; free space or change --out.") from error
        return place / "bin" / "python"

    def discard(self, name: str) -> None:
        """Remove an environment: links only."""
        shutil.rmtree(self.folder / name, ignore_errors=True)

    def _link(self, library: Path, packages: Collection[Package]) -> None:
        made = {library}
        for package in sorted(packages, key=lambda each: each.name):
            for link in self.folders.links(package):
                place = library / link.place
                if place.parent not in made:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    made.add(place.parent)
                try:
                    os.symlink(link.target, place)
                except FileExistsError:
                    continue  # two packages with the same file: the first by name has it, always
