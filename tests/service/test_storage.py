"""A full disk and a damaged world: nothing is acknowledged that was not stored, and the page says what is wrong."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service import payloads
from tests.service.hub import Hub
from tests.service.payloads import commit
from validator.service.results.pack import pack


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight MiB."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], check=True)
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(disk: Path) -> Path:
    """A file that takes all that is left."""
    file = disk / "filler"
    with file.open("wb", buffering=0) as stream:
        try:
            while True:
                stream.write(b"\0" * 4096)
        except OSError:
            pass
    return file


@pytest.mark.system
def test_on_a_full_disk_nothing_is_acknowledged_and_nothing_lost(hub: Hub, small_disk: Path) -> None:
    if hub.database_url.startswith("sqlite"):
        hub.database_url = f"sqlite:///{small_disk / 'service.db'}"
    hub.changes["data"] = str(small_disk)
    hub.add_golden()
    number, sha = hub.pull()
    assert hub.deliver("pull_request", payloads.pull_request(sha, number)).status_code == 202
    hub.round("jobs")
    stream = io.BytesIO()
    pack(hub.good_check(), stream)  # type: ignore[arg-type]
    body = stream.getvalue()
    token = hub.service.tokens.create("tests", payloads.NAME, 3600.0)
    headers = {"Authorization": f"Bearer {token}", "X-Content-SHA256": hashlib.sha256(body).hexdigest()}
    address = f"/api/v1/attempts/{hub.key_of_job()[:20]}-1/result"
    filler = fill(small_disk)

    refused = hub.client.put(address, content=body, headers=headers)
    assert refused.status_code in (503, 507)
    page = hub.client.get("/jobs/1", headers={"Accept": "text/html"})
    assert page.status_code == 200
    assert "The service is not ready" in page.text
    assert "MiB are free" in page.text
    assert hub.client.get("/readyz").status_code == 503
    if hub.database_url.startswith("sqlite"):
        payload = payloads.pull_request(commit("b"), 8)
        statuses = [hub.deliver("pull_request", payload | {"pad": "x" * 20_000 * n}).status_code for n in range(3)]
        assert set(statuses) <= {202, 409, 503}
        stored = statuses.count(202)
        assert len(hub.jobs()) == 1 + min(stored, 1)

    os.unlink(filler)
    assert hub.client.put(address, content=body, headers=headers).status_code == 201
    assert hub.job()["verdict"] == "pass"
    assert hub.deliver("pull_request", payloads.pull_request(commit("c"), 9)).status_code == 202


def test_a_database_of_another_version_is_named(hub: Hub) -> None:
    with hub.service.database.write() as session:
        session.connection().exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert hub.client.get("/readyz").json()["problems"][0] == "The database is not at this version of the service."


def test_a_pipeline_that_is_not_valid_is_named_on_the_page(hub: Hub) -> None:
    hub.project.pipeline.write_text("name: tiny\n")
    answer = hub.client.get("/", headers={"Accept": "text/html"})
    assert answer.status_code == 200
    assert "The service is not ready" in answer.text


def test_the_tables_are_those_of_the_migrations(hub: Hub) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    from validator.service.tables import Base

    with hub.service.database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
