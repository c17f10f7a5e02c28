"""Takes one delivery in: authenticated, understood, stored, and only then acknowledged."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from validator.service.database import Database
from validator.service.jobs.store import Taken, take_in
from validator.service.settings import Settings
from validator.service.tables import Delivery
from validator.service.webhooks.asks import Ask, Nothing
from validator.service.webhooks.events import MalformedEventError, understand
from validator.service.webhooks.signature import is_signed

#: How the body of a delivery begins that was read from the App's list, where there is no raw body to take a digest of.
LISTED = "listed:"

_GUID = re.compile(r"[A-Za-z0-9-]{8,64}")
_EVENT = re.compile(r"[a-z0-9_]{1,64}")


@dataclass(frozen=True, slots=True)
class Answer:
    """HTTP status, outcome in one word, and a sentence."""

    status: int
    outcome: str
    sentence: str


@final
class Receiver:
    """The one door for GitHub's events. ``pipelines`` gives those that an event calls for."""

    def __init__(
        self, database: Database, settings: Settings, pipelines: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._database = database
        self._settings = settings
        self._pipelines = pipelines
        self._clock = clock

    def webhook(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """A delivery over HTTP; header names in lower case. Raises ``StorageError``: then it is not acknowledged."""
        secret = self._settings.webhook_secret.reveal()
        if not secret:
            return Answer(503, "refused", "VALIDATOR_WEBHOOK_SECRET is not set, so no webhook can be authenticated.")
        if not is_signed(secret, body, headers.get("x-hub-signature-256")):
            return Answer(401, "refused", "X-Hub-Signature-256 is not this body's under the shared secret.")
        event, guid = headers.get("x-github-event", ""), headers.get("x-github-delivery", "")
        if not _EVENT.fullmatch(event) or not _GUID.fullmatch(guid):
            return Answer(
                400, "refused", "X-GitHub-Event and X-GitHub-Delivery have to name the event and the delivery."
            )
        try:
            payload = json.loads(body)
        except (ValueError, RecursionError):
            return Answer(400, "refused", "The body is no JSON; set the webhook's content type to application/json.")
        return self.delivery(event, guid, payload, hashlib.sha256(body).hexdigest())

    def delivery(self, event: str, guid: str, payload: Any, body: str) -> Answer:
        """A delivery that is known to be GitHub's; ``body`` is what tells one body from another."""
        if not isinstance(payload, dict):
            return Answer(400, "refused", "The body is no JSON object.")
        try:
            ask = self._understood(event, payload)
        except MalformedEventError as error:
            return Answer(400, "refused", str(error))
        pipelines = () if isinstance(ask, Nothing) else self._pipelines()
        for last in (False, False, True):
            try:
                with self._database.write() as session:
                    return self._store(session, ask, pipelines, Delivery(
                        guid=guid, event=event, action=str(payload.get("action") or "")[:64], body=body,
                        received=self._clock(),
                    ))  # fmt: skip
            except (IntegrityError, StaleDataError):
                if last:  # what another writer did first is committed by now, and was found
                    raise
        raise AssertionError

    def _understood(self, event: str, payload: dict[str, Any]) -> Ask:
        ask = understand(event, payload, self._settings.github_app)
        allowed = {name.lower() for name in self._settings.repositories}
        if not isinstance(ask, Nothing) and allowed and ask.source.repository.lower() not in allowed:
            return Nothing("The repository is none of VALIDATOR_REPOSITORIES.")
        return ask

    def _store(self, session: Session, ask: Ask, pipelines: Sequence[str], delivery: Delivery) -> Answer:
        known = session.get(Delivery, delivery.guid)
        if known is not None:
            if known.body != delivery.body and not known.body.startswith(LISTED):
                return Answer(409, "refused", "Another body came under this delivery ID.")
            return Answer(200, "duplicate", f"This delivery was received before: {known.outcome}. {known.sentence}")
        if session.scalars(select(Delivery.guid).where(Delivery.body == delivery.body)).first() is not None:
            return Answer(409, "refused", "The same body was received before under another delivery ID: a replay.")
        taken: Taken = take_in(session, ask, pipelines, self._clock())
        delivery.outcome, delivery.sentence = taken.outcome, taken.sentence
        session.add(delivery)
        return Answer(202, taken.outcome, taken.sentence)
