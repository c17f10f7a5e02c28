"""Wheels made on the spot: what is installed here packed again, and a torch whose launcher is the launch double."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

_DOUBLE = Path(__file__).parents[1] / "double" / "launch_double.py"

_LAUNCHER = """\
import json, os, runpy, sys, tempfile
from pathlib import Path
faults = Path(tempfile.mkdtemp()) / "faults.json"
faults.write_text(json.dumps({"*": FAULTS}))
os.environ["DOUBLE"] = str(faults)
sys.argv = [sys.argv[0], "-m", "torch.distributed.run", *sys.argv[1:]]
runpy.run_path(str(Path(__file__).with_name("launch_double.py")), run_name="__main__")
"""


def torch(folder: Path, version: str, **faults: object) -> Path:
    """A wheel of that version whose ``torch.distributed.run`` launches the double with these faults."""
    faults["packages"] = {"torch": version}
    launcher = _LAUNCHER.replace("FAULTS", repr(json.loads(json.dumps(faults))))
    files = {
        "torch/__init__.py": f"__version__ = {version!r}\n".encode(),
        "torch/distributed/__init__.py": b"",
        "torch/distributed/run.py": launcher.encode(),
        "torch/distributed/launch_double.py": _DOUBLE.read_bytes(),
    }
    return wheel(folder, "torch", version, files)


def wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    """A pure wheel of these files."""
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    tags = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = files | {f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": tags.encode()}
    return _zipped(folder / f"{name}-{version}-py3-none-any.whl", info, files)


def repacked(folder: Path, names: Iterable[str]) -> None:
    """Installed distributions and all that they need, as wheels again."""
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        found = distribution(name)
        _repack(folder, found)
        needed = map(Requirement, found.requires or ())
        waiting += [each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})]


def _repack(folder: Path, found: Distribution) -> None:
    text = found.read_text("WHEEL") or ""
    tags = re.findall(r"^Tag: (.+)$", text, re.MULTILINE)
    python, abi, platforms = (
        ".".join(dict.fromkeys(part)) for part in zip(*(tag.split("-") for tag in tags), strict=True)
    )
    files, info = {}, ""
    for file in found.files or ():
        path = str(file)
        if path.startswith("..") or path.endswith((".pyc", "/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json")):
            continue
        if "/tests/" in path:
            continue  # half of numpy and scipy, and nothing that is used here
        if path.endswith(".dist-info/METADATA"):
            info = path.rpartition("/")[0]
        files[path] = Path(str(file.locate())).read_bytes()
    name = info.removesuffix(".dist-info")
    _zipped(folder / f"{name}-{python}-{abi}-{platforms}.whl", info, files)


def _zipped(target: Path, info: str, files: dict[str, bytes]) -> Path:
    lines = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
        for path, data in files.items()
    ]
    record = "\n".join([*lines, f"{info}/RECORD,,", ""])
    with zipfile.ZipFile(target, "w") as archive:
        for path, data in (files | {f"{info}/RECORD": record.encode()}).items():
            archive.writestr(path, data)
    return target
