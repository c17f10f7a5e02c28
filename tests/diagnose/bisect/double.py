"""The launch double as a package: what an environment's ``torch`` is in these tests."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

_PROGRAM = Path(__file__).resolve().parents[2] / "double" / "launch_double.py"

_RUN = """\
import json, os, runpy, sys, tempfile
from importlib import metadata

versions = {{found.metadata["Name"]: found.version for found in metadata.distributions()}}
faults = {rule}
with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
    json.dump({{"*": faults}}, file)
os.environ["DOUBLE"] = file.name
double = runpy.run_path({program!r}, run_name="double")
code = double["main"](["-m", "torch.distributed.run", *sys.argv[1:]])
os.unlink(file.name)
sys.exit(code)
"""


def torch_double(rule: str = "{}") -> dict[str, str]:
    """Files of a ``torch`` whose faults are ``rule``, an expression over ``versions`` of the installed packages."""
    return {
        "torch/__init__.py": "",
        "torch/distributed/__init__.py": "",
        "torch/distributed/run.py": _RUN.format(rule=rule, program=str(_PROGRAM)),
    }


def real_files(name: str) -> Mapping[str, str]:
    """The Python files of a package that is installed beside the tests."""
    files = metadata.distribution(name).files or []
    return {str(file): file.read_text() for file in files if file.suffix == ".py" and ".." not in file.parts}


#: What the double itself needs, as a lock pins it: taken from the environment that the tests run in.
NUMPY = f"numpy=={metadata.version('numpy')}"


def real_numpy(library: Path) -> None:
    """NumPy of the tests' own environment in another one, by links."""
    found = metadata.distribution("numpy")
    root = Path(str(found.locate_file("")))
    for name in {file.parts[0] for file in found.files or [] if ".." not in file.parts}:
        (library / name).symlink_to(root / name)
