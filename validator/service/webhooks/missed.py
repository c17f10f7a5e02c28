"""Finds what GitHub tried to tell and could not: the service was down, locked or full."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from typing import final

from sqlalchemy import select

from validator.service.database import Database
from validator.service.github import GitHub, GitHubError
from validator.service.tables import Delivery
from validator.service.webhooks.receive import LISTED, Receiver

log = logging.getLogger(__name__)

#: GitHub keeps deliveries for three days.
_BACK = 3 * 24 * 3600.0


@final
class Missed:
    """Goes through the App's delivery list, and takes in what was not acknowledged. What GitHub's API says over an
    authenticated connection needs no signature.
    """

    def __init__(
        self, database: Database, github: GitHub, receiver: Receiver, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._github = github
        self._receiver = receiver
        self._clock = clock

    def run_once(self) -> int:
        """Take in what was missed, oldest first; gives how many. Raises ``StorageError``, ``GitHubError``."""
        taken = 0
        for row in self._github.failed_deliveries(self._clock() - _BACK):
            with self._database.read() as session:
                if session.scalars(select(Delivery.guid).where(Delivery.guid == row.guid)).first() is not None:
                    continue
            try:
                payload = self._github.delivery(row.id)
            except GitHubError as error:
                log.warning("delivery %s: %s", row.guid, error)
                continue
            # GitHub's list gives the content, not the raw body: the GUID stands for it.
            digest = hashlib.sha256(row.guid.encode()).hexdigest()
            answer = self._receiver.delivery(row.event, row.guid, payload, (LISTED + digest)[:64])
            log.info("missed delivery %s (%s): %s. %s", row.guid, row.event, answer.outcome, answer.sentence)
            taken += answer.status == 202
        return taken
