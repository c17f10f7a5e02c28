"""Leave to push: random tokens, each for one repository or one attempt's job, that expire and can be revoked."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from validator.errors import UsageError
from validator.service.database import Database
from validator.service.tables import Job, Token

_PREFIX = "vpt_"  # so that secret scanners can tell it

#: ``used`` is kept to this precision, in seconds, so that a reading of a token seldom writes.
_USED = 60.0


@dataclass(frozen=True, slots=True)
class Leave:
    """What a token allows, found valid."""

    name: str
    repository: str
    job_key: str

    def allows(self, job: Job) -> bool:
        """Whether a result of ``job`` may be pushed with it."""
        return self.job_key == job.key if self.job_key else self.repository.lower() == job.repository.lower()


@final
class Tokens:
    """All tokens."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock

    def create(self, name: str, repository: str, seconds: float, job_key: str = "") -> str:
        """A new token; this is the only time that it is shown."""
        token = _PREFIX + secrets.token_urlsafe(32)
        now = self._clock()
        with self._database.write() as session:
            session.add(
                Token(
                    name=name, digest=_digest(token), repository=repository, job_key=job_key, created=now,
                    expires=now + seconds,
                )
            )  # fmt: skip
        return token

    def find(self, authorization: str | None) -> Leave | None:
        """What an Authorization header allows; ``None`` for a token that is unknown, expired or revoked."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return None
        now = self._clock()
        with self._database.read() as session:
            found = session.scalars(select(Token).where(Token.digest == _digest(token.strip()))).first()
        if found is None or found.revoked is not None or found.expires <= now:
            return None
        if found.used is None or now - found.used > _USED:
            with self._database.write() as session:
                session.execute(update(Token).where(Token.id == found.id).values(used=now))
        return Leave(found.name, found.repository, found.job_key)

    def list(self) -> tuple[Token, ...]:
        """Tokens made by people, newest first."""
        with self._database.read() as session:
            return tuple(session.scalars(select(Token).where(Token.job_key == "").order_by(Token.id.desc())))

    def revoke(self, number: int) -> None:
        """From now on the token allows nothing. Raises ``UsageError`` where there is none of that number."""
        with self._database.write() as session:
            token = session.get(Token, number)
            if token is None:
                raise UsageError(f"There is no token {number}; validator token list shows them.")
            token.revoked = token.revoked or self._clock()


def revoke_all(session: Session, job: Job, now: float) -> None:
    """A job's own tokens allow nothing any more."""
    session.execute(update(Token).where(Token.job_key == job.key, Token.revoked.is_(None)).values(revoked=now))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
