"""The project's Dockerfiles, built by a real engine without a network.

What they install is gigabytes from an index: packages of the same names and versions, but without content, stand for
it. So this shows that every instruction runs, that the pinned versions are asked for and arrive in the last layer, and
that the result is not root; not that NVIDIA's packages work together.
"""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from tests.system.engine import CACHE, Engine

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


def wheel(folder: Path, name: str, version: str, modules: Iterable[str]) -> None:
    """A wheel of that name whose modules know their version and nothing else."""
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for module in modules:
            archive.writestr(f"{module}.py", f"__version__ = {version!r}\n")
        info = f"{stem}.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


#: Modules of each package that an image has to be able to import.
MODULES = {
    "torch": ("torch",), "megatron-core": ("megatron/__init__", "megatron/core"), "einops": ("einops",),
    "psutil": ("psutil",), "numpy": ("numpy",), "xxhash": ("xxhash",), "causal-conv1d": ("causal_conv1d",),
    "mamba-ssm": ("mamba_ssm",),
}  # fmt: skip


def python_base(engine: Engine, name: str, folder: Path, versions: Mapping[str, str], more: str = "") -> None:
    """An image with ``python``, ``pip``, and an index that is a folder of the packages in ``versions``."""
    made = CACHE / "debian-bookworm-pip.tar"
    if not made.exists():
        CACHE.mkdir(mode=0o700, exist_ok=True)
        part = made.with_suffix(f".{os.getpid()}.tar")
        packages = "python3,python3-venv,python3-pip,python-is-python3"
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={packages}", "bookworm", str(part)]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        part.rename(made)
    engine.add(made, "debian:pip")
    folder.mkdir()
    for package, version in versions.items():
        wheel(folder, package, version, MODULES[package])
    files = {f"index/{path.name}": path.read_bytes() for path in folder.iterdir()}
    lines = [
        "FROM debian:pip", "COPY index /index", "RUN rm /usr/lib/python3*/EXTERNALLY-MANAGED",
        "ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/index", more,
    ]  # fmt: skip
    engine.build(name, "\n".join(lines) + "\n", files)


def build(engine: Engine, repository: Path, kind: str, base: str) -> str:
    """Build as the file's own comment says, but for the network."""
    name = f"built-{kind}:1"
    command = [
        "/usr/bin/docker", "-H", engine.address, "build", "--network=none", "--build-arg", f"BASE={base}",
        "-f", str(repository / "containers" / kind / "Dockerfile"), "-t", name, str(repository / "containers" / kind),
    ]  # fmt: skip
    if kind == "cpu":
        command[-1] = str(repository)
    done = subprocess.run(
        command, env=os.environ | {"DOCKER_BUILDKIT": "1"}, capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return name


def pinned(repository: Path) -> dict[str, str]:
    lines = (repository / "constraints.txt").read_text().split()
    return dict(line.split("==") for line in lines if "==" in line)


def test_the_cpu_image(engine: Engine, repository: Path, tmp_path: Path) -> None:
    versions = {
        name: pinned(repository)[name] for name in ("torch", "megatron-core", "einops", "psutil", "numpy", "xxhash")
    }
    python_base(engine, "base:cpu", tmp_path / "index", versions)
    name = build(engine, repository, "cpu", "base:cpu")
    printed = engine.client.containers.run(name, remove=True, network_mode="none").decode()
    assert printed.split() == [versions["megatron-core"], versions["torch"]]
    frozen = engine.client.containers.run(name, ["pip", "freeze"], remove=True, network_mode="none").decode()
    found = dict(line.split("==") for line in frozen.split() if "==" in line)
    assert {package: found[package] for package in versions} == versions
    user = engine.client.containers.run(name, ["id", "-u"], remove=True, network_mode="none").decode()
    assert user.strip() == "10001"


def test_the_cuda_image_whatever_nvidias_image_pins(engine: Engine, repository: Path, tmp_path: Path) -> None:
    text = (repository / "containers" / "cuda" / "Dockerfile").read_text()
    versions = dict(pair.split("==") for pair in re.findall(r"[\w-]+==[\w.]+", text))
    # As NVIDIA's image does: a constraints file that holds other versions of what is replaced.
    more = "RUN echo 'psutil==1.0.0' >/constraint.txt\nENV PIP_CONSTRAINT=/constraint.txt"
    python_base(
        engine, "base:cuda", tmp_path / "index", versions | {"torch": "2.14.0"}, more + "\nRUN pip install torch"
    )
    name = build(engine, repository, "cuda", "base:cuda")
    assert engine.client.containers.run(name, remove=True, network_mode="none").decode().strip() == "2.14.0"
    frozen = engine.client.containers.run(name, ["pip", "freeze"], remove=True, network_mode="none").decode()
    found = dict(line.split("==") for line in frozen.split() if "==" in line)
    assert {package: found[package] for package in versions} == versions
    image = engine.client.images.get(name)
    assert image.attrs["Config"]["User"] == "10001"
    assert "PIP_CONSTRAINT=/constraint.txt" in image.attrs["Config"]["Env"]  # the image's own variables stay
