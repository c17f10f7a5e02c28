"""The service in this process, on SQLite and (system tests) on a PostgreSQL of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.github.double.server import serving
from tests.github.double.state import State
from tests.project import Project
from tests.repository import Repo
from tests.service.double.github import ServiceDouble
from tests.service.hub import Hub
from tests.service.payloads import NAME
from tests.service.postgres import new_database, running
from validator.service.database import Database

_NUMBER = count()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a PostgreSQL server."""
    with running(tmp_path_factory.mktemp("postgres")) as address:
        yield address


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.system)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database: every test that takes it is run on both."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'service.db'}"
    return new_database(request.getfixturevalue("postgres"), f"test_{next(_NUMBER)}")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The service's tables, empty."""
    made = Database(database_url, busy_seconds=0.5)
    made.upgrade()
    yield made
    made.dispose()


@pytest.fixture(scope="session")
def app_key() -> tuple[str, str]:
    """Private and public key of the App, PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the first test makes and the others copy."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def hub(project: Project, tmp_path: Path, app_key: tuple[str, str], database_url: str, kept: Path) -> Iterator[Hub]:
    """A project whose repository is at the double of GitHub; ``hub.service`` is a service for it, not yet running."""
    bare = tmp_path / "hub.git"
    repo = Repo.create(project.folder)
    repo.git("init", "-q", "--bare", "-b", "main", str(bare))
    repo.write(".gitignore", "runs/\nreport.json\n")
    repo.commit("a pipeline")
    repo.git("remote", "add", "origin", str(bare))
    repo.git("push", "-q", "origin", "main")
    with serving(ServiceDouble(State(NAME, bare), app_key[1])) as double:
        assert isinstance(double, ServiceDouble)
        made = Hub(project, repo, double, app_key[0], database_url, kept)
        yield made
        made.close()
        assert double.bad == []
