"""The service put together: what it remembers, what it does in the background, and what its doors lead to."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from sqlalchemy import make_url

from validator.errors import ValidatorError
from validator.pipeline import load_pipeline
from validator.service.background import Loop, Redacting
from validator.service.clone import Clone
from validator.service.database import Database
from validator.service.engines.actions import ActionsEngine
from validator.service.engines.local import LocalEngine
from validator.service.engines.model import Engine
from validator.service.engines.slurm import SlurmEngine
from validator.service.github import GitHub
from validator.service.github_api import GitHubApi
from validator.service.jobs.aggregate import Aggregates
from validator.service.jobs.life import Life
from validator.service.jobs.planning import Planner
from validator.service.jobs.publishing import Publisher
from validator.service.jobs.requests import Requests
from validator.service.results.intake import Intake
from validator.service.settings import Secret, Settings
from validator.service.tokens import Tokens
from validator.service.views import pipelines_of
from validator.service.webhooks.missed import Missed
from validator.service.webhooks.receive import Receiver

log = logging.getLogger(__name__)

#: Below this many free bytes nothing new is promised.
_LEAST_FREE = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Service:
    """All parts of one running service."""

    settings: Settings
    database: Database
    receiver: Receiver
    intake: Intake
    tokens: Tokens
    loops: tuple[Loop, ...]

    @classmethod
    def build(cls, settings: Settings, github: GitHub | None = None) -> Self:
        """Put the parts together; nothing runs yet. ``github`` is for tests. Raises ``ValidatorError``."""
        database = Database(settings.database_url)
        github = github or _github(settings)
        receiver = Receiver(database, settings, lambda: pipelines_of(settings))
        clone = Clone(settings.folder / "repository", settings.root)
        intake = Intake(database, settings, clone)
        planner = Planner(database, settings, clone, lambda: pipelines_of(settings))
        life = Life(database, settings, _engine(settings, github))
        loops = [Loop("plans", 1.0, planner.run_once), Loop("jobs", min(settings.poll_seconds, 1.0), life.run_once)]
        if github is not None:
            publisher = Publisher(database, settings, github, intake.document)
            aggregates = Aggregates(database, settings, github)
            requests = Requests(database, settings, github, lambda: pipelines_of(settings))
            missed = Missed(database, github, receiver)
            loops += [
                Loop("publishing", 1.0, publisher.run_once),
                Loop("aggregates", 1.0, aggregates.run_once),
                Loop("requests", 2.0, requests.run_once),
                Loop("deliveries", settings.delivery_seconds, missed.run_once),
            ]
        return cls(settings, database, receiver, intake, Tokens(database), tuple(loops))

    def start(self) -> None:
        """Bring the database up to date and begin the background work. Raises ``ValidatorError``."""
        self.database.upgrade()
        self.intake.sweep()
        for loop in self.loops:
            loop.start()

    def stop(self) -> None:
        """End the background work after its current round; workers of the engine go on."""
        for loop in self.loops:
            loop.stop()
        for loop in self.loops:
            loop.join(5.0)
        self.database.dispose()

    def wake(self) -> None:
        """Something was stored that wants doing."""
        for loop in self.loops:
            if loop.name != "deliveries":
                loop.wake()

    def problems(self) -> tuple[str, ...]:
        """What keeps the service from doing its work now, in sentences; empty where all is well."""
        found = []
        try:
            if not self.database.is_current():
                found.append("The database is not at this version of the service.")
        except ValidatorError as error:
            found.append(str(error))
        if not self.settings.webhook_secret:
            found.append("VALIDATOR_WEBHOOK_SECRET is not set: no webhook is accepted.")
        if (free := _free(self.settings.folder)) < _LEAST_FREE:
            found.append(f"Only {free // 1024**2} MiB are free in {self.settings.folder}: results cannot be kept.")
        try:
            for name in pipelines_of(self.settings):
                load_pipeline(name, self.settings.root)
        except ValidatorError as error:
            found.append(str(error))
        found += [f"{loop.name}: {loop.problem}" for loop in self.loops if loop.problem]
        return tuple(dict.fromkeys(found))


def set_up_logging(settings: Settings) -> None:
    """Log to standard error, with every secret taken out."""
    password = make_url(settings.database_url).password
    secrets = (
        settings.webhook_secret, settings.github_private_key, settings.github_token, Secret(password or ""),
    )  # fmt: skip
    handler = logging.StreamHandler()
    handler.setFormatter(_Utc("%(asctime)sZ %(levelname)s %(name)s: %(message)s"))
    handler.addFilter(Redacting(secrets))
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)
    for noisy in ("httpx", "httpcore", "alembic", "uvicorn.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


class _Utc(logging.Formatter):
    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002
        return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _github(settings: Settings) -> GitHub | None:
    if not settings.github_app and not settings.github_token:
        return None
    return GitHubApi(
        settings.github_url, settings.github_app, settings.github_private_key.reveal(), settings.github_token.reveal()
    )


def _engine(settings: Settings, github: GitHub | None) -> Engine:
    if settings.engine == "actions":
        if github is None:
            raise ValidatorError(
                "VALIDATOR_ENGINE is actions, which needs VALIDATOR_GITHUB_APP or VALIDATOR_GITHUB_TOKEN."
            )
        return ActionsEngine(github, settings.workflow, settings.workflow_ref)
    about = {
        "url": settings.public_url, "project": str(settings.root), "prepare": settings.worker_prepare,
        "options": settings.worker_options,
    }  # fmt: skip
    folder = settings.folder / "work"
    if settings.engine == "slurm":
        return SlurmEngine(folder, about, settings.slurm_options)
    return LocalEngine(folder, about)


def _free(folder: Path) -> int:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free
