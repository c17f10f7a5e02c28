"""A project at a double of GitHub."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.github.double.server import APP, Double, serving
from tests.github.double.state import State
from tests.github.hub import NAME, Hub
from tests.project import Project
from tests.repository import Repo
from validator.github import transport


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
def hub(
    project: Project, tmp_path: Path, app_key: tuple[str, str], golden_once: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hub]:
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
    with serving(Double(State(NAME, bare), public)) as double:
        settings = {
            "GITHUB_API_URL": double.url, "GITHUB_REPOSITORY": NAME, "VALIDATOR_APP_ID": str(APP),
            "VALIDATOR_APP_KEY": private, "GITHUB_TOKEN": "",
        }  # fmt: skip
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        (tmp_path / "results").mkdir()
        yield Hub(project, repo, double)
