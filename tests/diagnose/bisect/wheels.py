"""Small packages made for a test: as wheels, and as environments that they are unpacked into."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path


def contents(name: str, version: str, files: Mapping[str, str]) -> dict[str, str]:
    """All files of an installed package, its metadata and its record included."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    every = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    for place, text in every.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{place},sha256={digest},{len(text.encode())}\n")
    return {**every, f"{info}/RECORD": "".join(lines) + f"{info}/RECORD,,\n"}


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str] | None = None) -> Path:
    """A wheel in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for place, text in contents(name, version, files or {f"{name}.py": f"version = {version!r}\n"}).items():
            archive.writestr(zipfile.ZipInfo(place), text)  # without the time: the same content is the same file
    return wheel


def make_environment(folder: Path) -> Path:
    """A new environment without packages; returns its folder for packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def unpack(library: Path, name: str, version: str, files: Mapping[str, str] | None = None) -> None:
    """Install a package into an environment."""
    for place, text in contents(name, version, files or {f"{name}.py": f"version = {version!r}\n"}).items():
        (library / place).parent.mkdir(parents=True, exist_ok=True)
        (library / place).write_text(text)
