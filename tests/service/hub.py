"""A project at the double of GitHub, and the service that serves it."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
from fastapi.testclient import TestClient
from sqlalchemy import update

from tests.project import Project
from tests.repository import Repo
from tests.service import payloads
from tests.service.double.github import ServiceDouble
from tests.service.payloads import SECRET
from validator.service.app import create_app
from validator.service.core import Service
from validator.service.settings import Secret, Settings
from validator.service.tables import Base, Job, Publication, Request


@dataclass
class Hub:
    """The project (a clone), the double, and the service; ``settings`` may be changed before ``service`` is used."""

    project: Project
    repo: Repo
    double: ServiceDouble
    key: str
    database_url: str
    kept: Path
    changes: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Settings:
        settings = Settings(
            data=str(self.project.folder.parent / "data"), database=Secret(self.database_url),
            project=str(self.project.folder), webhook_secret=Secret(SECRET), github_url=self.double.url,
            github_app=str(payloads.APP), github_private_key=Secret(self.key), retry_seconds=0.01, poll_seconds=0.01,
            worker_options=f"--python {self.project.double.python}", engine="actions", workflow="check.yml",
        )  # fmt: skip
        return replace(settings, **self.changes)

    @cached_property
    def service(self) -> Service:
        service = Service.build(self.settings)
        service.database.upgrade()
        return service

    @cached_property
    def client(self) -> TestClient:
        """HTTP to the app; its background work does not run by itself."""
        return TestClient(create_app(self.service), raise_server_exceptions=False)

    def close(self) -> None:
        if "service" in self.__dict__:
            self.service.database.dispose()

    def deliver(self, event: str, payload: dict[str, Any], guid: str = "", **changes: str) -> httpx.Response:
        """One webhook."""
        body = payloads.encoded(payload)
        headers = payloads.headers(event, body, guid or str(uuid.uuid4())) | changes
        answer: httpx.Response = self.client.post("/webhooks/github", content=body, headers=headers)
        return answer

    def round(self, name: str = "") -> None:
        """One round of the background work: all of it, or one loop."""
        if name == "jobs":
            self.due(Job)
        for loop in self.service.loops:
            if name in ("", loop.name):
                loop.round()

    def due(self, *tables: type[Base]) -> None:
        """As if every pause were over."""
        with self.service.database.write() as session:
            for table in tables or (Job, Publication, Request):
                session.execute(update(table).values(after=0.0))

    def jobs(self, **filters: str) -> list[dict[str, Any]]:
        """All jobs, newest first, as the API has them."""
        found: list[dict[str, Any]] = self.client.get("/api/v1/jobs", params=filters).json()["jobs"]
        return found

    def job(self, number: int = 1) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"/api/v1/jobs/{number}").json()
        return found

    def push(self, branch: str = "change", **files: str) -> str:
        """Commit the work tree and push it; gives the commit."""
        sha = self.repo.commit(f"a change of {branch}")
        self.repo.git("push", "-q", "-f", "origin", f"HEAD:refs/heads/{branch}")
        return sha

    def pull(self, branch: str = "change", fork: str | None = None) -> tuple[int, str]:
        """An open pull request with a commit of its own; gives its number and head."""
        sha = self.push(branch)
        return int(self.double.state.add_pull(branch, sha, "main", fork)["number"]), sha

    def add_golden(self) -> None:
        """Give the base revision a golden: recorded by the first test, copied by the others."""
        if not (self.kept / "golden").exists():
            assert self.project.record_golden().code == 0
            shutil.copytree(self.project.goldens, self.kept / "golden")
        shutil.copytree(self.kept / "golden", self.project.goldens, dirs_exist_ok=True)
        self.repo.commit("a golden")

    def good_check(self) -> Path:
        """The folder of a check that passes against the golden."""
        return self.kept_check("good", {})

    def kept_check(self, name: str, faults: dict[str, Any]) -> Path:
        """The folder of a check with these faults: made by the first test, copied by the others."""
        out = self.project.folder.parent / name
        if not (self.kept / name).exists():
            self.project.double.misbehave(**faults)
            made = self.run_check(f"first-{name}")
            self.project.double.misbehave()
            shutil.copytree(made, self.kept / name, ignore=shutil.ignore_patterns("kit", "checkpoints"))
        shutil.copytree(self.kept / name, out, dirs_exist_ok=True)
        return out

    def run_check(self, name: str = "out", *words: str) -> Path:
        """A check of the project with the double of the launch; gives its folder."""
        out = self.project.folder.parent / name
        self.project.check("--out", str(out), *words)
        return out

    def key_of_job(self, number: int = 1) -> str:
        with self.service.database.read() as session:
            return session.get_one(Job, number).key

    def check_runs(self) -> list[dict[str, Any]]:
        return [dict(run) for run in self.double.state.check_runs]

    @staticmethod
    def load(file: Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(file.read_text())
        return found
