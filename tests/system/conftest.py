"""Servers that system tests share: started once, stopped by process id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.engine import Engine, debian
from tests.system.slurm_cluster import Cluster


@pytest.fixture(scope="session")
def _engine() -> Iterator[Engine]:
    started = Engine()
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def engine(_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The engine that the product finds. No test leaves a container or a volume."""
    monkeypatch.setenv("DOCKER_HOST", _engine.address)
    yield _engine
    left = _engine.containers
    for container in _engine.client.containers.list(all=True):
        container.remove(force=True)
    assert (left, _engine.volumes) == ([], [])


@pytest.fixture(scope="session")
def _debian(_engine: Engine) -> str:
    _engine.add(debian(), "debian:base")
    return "debian:base"


@pytest.fixture
def debian_image(engine: Engine, _debian: str) -> str:
    """A minimal Debian with Python 3.11."""
    return _debian


@pytest.fixture(scope="session")
def _cluster() -> Iterator[Cluster]:
    started = Cluster()
    try:
        yield started
    finally:
        started.close()


@pytest.fixture
def cluster(_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """The cluster that the product finds. No test leaves a job."""
    monkeypatch.setenv("SLURM_CONF", str(_cluster.configuration))
    yield _cluster
    left = _cluster.jobs
    for job in left:
        _cluster.ask("scancel", job)
    assert left == []


@pytest.fixture
def repository() -> Path:
    """The project's own checkout."""
    return Path(__file__).resolve().parents[2]
