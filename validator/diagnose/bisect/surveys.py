"""What an environment holds: its Python, and every package in it with its files. Only its Python is run."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.utils import canonicalize_name

from validator.diagnose.bisect.packages import OURS, Package, PackageSet
from validator.errors import UsageError
from validator.execute.interpreter import Interpreter, asked_environment, find_interpreter

#: What a Python tells of itself beyond its version: where packages are found, what it is built on, and the values
#: that markers of requirements are compared with (the names of packaging's).
_QUESTION = """
import json, os, platform, sys, sysconfig
standard = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
path = [os.path.abspath(place) for place in sys.path if os.path.isdir(place)]
path = [place for place in path if os.path.realpath(place) not in standard and not place.endswith("lib-dynload")]
full = platform.python_version()
print(json.dumps({"base": getattr(sys, "_base_executable", None) or sys.executable, "path": path, "markers": {
    "os_name": os.name, "sys_platform": sys.platform, "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(), "platform_release": platform.release(),
    "platform_system": platform.system(), "platform_version": platform.version(), "python_full_version": full,
    "python_version": ".".join(full.split(".")[:2]), "implementation_name": sys.implementation.name,
    "implementation_version": full, "extra": "",
}}))
"""


@dataclass(frozen=True, slots=True)
class Survey:
    """A Python and what it finds. ``base`` is the executable that its environments are built on."""

    interpreter: Interpreter
    base: Path
    markers: dict[str, str]
    found: PackageSet


def survey(option: str, label: str | None = None, *, hashed: bool = False) -> Survey:
    """Ask the environment that ``option`` names: a folder, or a Python. ``hashed`` also tells packages of the same
    version apart, by the content of their files.

    Raises ``UsageError`` where there is no Python in it.
    """
    interpreter = find_interpreter(option)
    try:
        done = subprocess.run(
            [str(interpreter.path), "-c", _QUESTION],
            capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL, env=asked_environment(),
        )  # fmt: skip
        told = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
        raise UsageError(f"{option!r} does not say where its packages are ({type(error).__name__}).") from None
    packages, remarks = read_packages([Path(place) for place in told["path"]], label or option, hashed=hashed)
    return Survey(interpreter, Path(told["base"]), told["markers"], PackageSet(label or option, packages, remarks))


def read_packages(path: list[Path], label: str, *, hashed: bool = False) -> tuple[dict[str, Package], tuple[str, ...]]:
    """Packages found in the folders of ``path`` by name, the first of each; and remarks on those left out."""
    packages: dict[str, Package] = {}
    remarks = []
    for found in metadata.distributions(path=[str(place) for place in path]):
        name = canonicalize_name(str(found.metadata["Name"] or ""))
        if not name or name == OURS or name in packages:
            continue
        if found.files is None:
            remarks.append(f"{name} {found.version} of {label} does not list its files and is left out.")
            continue
        root = Path(str(found.locate_file("")))
        files = tuple(sorted(_inside(found.files)))
        identity = _identity(found.files, root) if hashed else ""
        packages[name] = Package(name, found.version, root, files, identity=identity)
    return packages, tuple(remarks)


def _inside(files: list[metadata.PackagePath]) -> Iterator[str]:
    """The files that are imported from: not commands, not bytecode, which is found beside its source."""
    for file in files:
        if not file.is_absolute() and ".." not in file.parts and file.suffix != ".pyc":
            yield file.as_posix()


def _identity(files: list[metadata.PackagePath], root: Path) -> str:
    """SHA-256 over names and contents: of Python files as they are now, of others by their size now and the digest with
    which they were installed. What the installer writes beside them (``*.dist-info``) does not count.
    """
    recorded = {file.as_posix(): file.hash.value for file in files if file.hash is not None}
    digest = hashlib.sha256()
    for name in sorted(_inside(files)):
        if PurePosixPath(name).parts[0].endswith((".dist-info", ".egg-info")):
            continue
        try:
            digest.update(f"{name}\0{_content(root / name, recorded.get(name, ''))}\0".encode())
        except OSError:
            digest.update(f"{name}\0missing\0".encode())
    return digest.hexdigest()


def _content(file: Path, recorded: str) -> str:
    if file.suffix in {".py", ".pth"}:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    return f"{file.stat().st_size} {recorded}"
