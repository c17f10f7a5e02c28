"""A project at a double of GitHub; for the workflows' tests also a hosted machine and the validator's repository."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.github import wheels
from tests.github.double.server import APP, Double, serving
from tests.github.double.state import State
from tests.github.hub import NAME, Hub
from tests.github.team import PRODUCT, ROOT, Team
from tests.project import Project
from tests.repository import Repo
from validator.github import transport

NUMERICS = {"diverge": {"step": 4, "group": "parameters", "leaf": "embedding.weight"}}


@pytest.fixture(scope="session")
def app_key() -> tuple[str, str]:
    """Private and public key of the App, as PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


@pytest.fixture(scope="session")
def golden_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place where the first test leaves the double's golden for the others."""
    return tmp_path_factory.mktemp("golden") / "golden"


@pytest.fixture
def kind_of_double() -> type[Double]:
    """What plays GitHub."""
    return Double


@pytest.fixture
def hub(
    project: Project, tmp_path: Path, app_key: tuple[str, str], golden_once: Path, monkeypatch: pytest.MonkeyPatch,
    kind_of_double: type[Double],
) -> Iterator[Hub]:  # fmt: skip
    """A project with a golden on main, a branch ``change``, and credentials of the App."""
    bare = tmp_path / "github" / NAME
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    repo = Repo.create(project.folder)
    repo.write(".gitignore", "runs/\nreport.json\n")
    repo.write("constraints.txt", "torch==2.14.1\n")
    if not golden_once.exists():
        assert project.record_golden().code == 0
        project.goldens.rename(golden_once)
    subprocess.run(["cp", "-r", str(golden_once), str(project.goldens)], check=True)
    repo.commit("a pipeline and its golden")
    repo.git("remote", "add", "origin", str(bare))
    repo.git("push", "-q", "origin", "main")
    repo.git("checkout", "-q", "-b", "change")
    private, public = app_key
    monkeypatch.setattr(transport, "BACK_OFF", 0.01)
    monkeypatch.setattr(transport, "READ_SECONDS", 1)
    with serving(kind_of_double(State(NAME, bare), public)) as double:
        settings = {
            "GITHUB_API_URL": double.url, "GITHUB_REPOSITORY": NAME, "VALIDATOR_APP_ID": str(APP),
            "VALIDATOR_APP_KEY": private, "GITHUB_TOKEN": "",
        }  # fmt: skip
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "results").mkdir()
        yield Hub(project, repo, double)


@pytest.fixture(scope="session")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A hosted machine's Python, and the wheels that its index has."""
    folder = tmp_path_factory.mktemp("hosted")
    links = folder / "links"
    links.mkdir()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [
        *project["dependencies"],
        *project["optional-dependencies"]["github"],
        "docker",
        "hatchling",
        "cryptography",
    ]
    wheels.repacked(links, [re.split(r"[<>=\[ ]", name, maxsplit=1)[0] for name in needed])
    wheels.torch(links, "2.14.1")
    wheels.torch(links, "2.14.2")
    wheels.torch(links, "2.15.0", **NUMERICS)
    wheels.torch(links, "2.15.1", diverge={"step": 5, "group": "parameters", "leaf": "embedding.weight"})
    subprocess.run([sys.executable, "-m", "venv", str(folder / "python")], check=True)
    return folder / "python" / "bin", links


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository of the validator as it is here, and its commit."""
    folder = tmp_path_factory.mktemp("product") / "validator"
    folder.mkdir()
    for name in ("validator", "scripts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "constraints.txt", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    repo = Repo.create(folder)
    return folder, repo.commit("the validator")


@pytest.fixture
def team(
    hub: Hub, hosted: tuple[Path, Path], product: tuple[Path, str], app_key: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> Team:  # fmt: skip
    python, links = hosted
    source, commit = product
    bare = tmp_path / "github" / PRODUCT
    subprocess.run(["git", "clone", "-q", "--bare", str(source), str(bare)], check=True)
    for each in (bare, tmp_path / "github" / NAME):
        subprocess.run(["git", "-C", str(each), "config", "uploadpack.allowAnySHA1InWant", "true"], check=True)
    monkeypatch.setenv("PATH", f"{python}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    return Team(hub, commit, app_key[0])
