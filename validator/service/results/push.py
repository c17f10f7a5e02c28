"""Hands a result in over HTTP. Repeating a push changes nothing. Only the standard library: runners need no more."""

from __future__ import annotations

import http.client
import json
import ssl
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, ClassVar, Self, cast, final
from urllib.parse import quote, urlsplit

from validator import __version__
from validator.errors import UsageError
from validator.service.results.pack import REPORT, pack

_SECONDS = 120.0

#: The service answered, and will not answer otherwise.
_REFUSALS = frozenset({400, 401, 403, 404, 409, 411, 413, 415, 422})


@dataclass(frozen=True, slots=True)
class Pushed:
    """The service's answer to a push: HTTP status (0: none came) and a sentence."""

    status: int
    sentence: str

    LOST: ClassVar[Pushed]

    @property
    def is_taken(self) -> bool:
        return self.status in (200, 201)

    @property
    def is_refused(self) -> bool:
        return self.status in _REFUSALS


Pushed.LOST = Pushed(0, "The service could not be reached in time; the result is kept and can be pushed again.")


@final
class Pusher:
    """Pushes one result to ``place`` of the service at ``url``, with a token."""

    def __init__(
        self, url: str, token: str, place: str, target: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Raises ``UsageError`` where ``url`` is no address."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{url!r} is no address of a service; write it like https://validator.example.")
        self._parts = parts
        self._token = token.strip()
        self._place = f"{parts.path.rstrip('/')}/api/v1/{place}"
        self._target = target
        self._sleep = sleep

    @classmethod
    def of_attempt(cls, url: str, token: str, attempt: str) -> Self:
        """For a result that a job of the service asked for; ``attempt`` is the key that was handed over."""
        return cls(url, token, f"attempts/{quote(attempt, safe='')}", "/result")

    @classmethod
    def of_commit(cls, url: str, token: str, repository: str, commit: str, out: Path) -> Self:
        """For a result that nobody was handed a key for; the pipeline is the report's."""
        try:
            pipeline = str(json.loads((out / REPORT).read_bytes())["pipeline"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{out} holds no readable {REPORT}; name the folder that a check was given.") from error
        place = f"repositories/{quote(repository)}/commits/{quote(commit, safe='')}"
        return cls(url, token, place, f"/results/{quote(pipeline, safe='')}")

    def push_until_answered(self, out: Path, patience: float = 600.0) -> Pushed:
        """Push until the service takes or refuses it, or for ``patience`` seconds. Raises ``UsageError``."""
        until, pause = time.monotonic() + patience, 0.5
        with tempfile.TemporaryFile() as packed:
            digest = pack(out, cast("BinaryIO", packed))
            while True:
                packed.seek(0)
                answer = self._send(
                    "PUT", self._target, packed, {"X-Content-SHA256": digest, "Content-Type": "application/gzip"}
                )
                if answer.is_taken or answer.is_refused:
                    return answer
                if time.monotonic() + pause > until:
                    return Pushed.LOST if not answer.status else answer
                self._sleep(pause)
                pause = min(pause * 2, 15.0)

    def progress(self, line: str) -> None:
        """Tell how the check stands; lost where the service is away."""
        self._send(
            "POST", "/progress", json.dumps({"line": line[:500]}).encode(), {"Content-Type": "application/json"}, 5.0
        )

    def _send(
        self, method: str, what: str, body: bytes | IO[bytes], headers: dict[str, str], seconds: float = _SECONDS
    ) -> Pushed:
        host, port = self._parts.hostname or "", self._parts.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=seconds, context=ssl.create_default_context())
            if self._parts.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=seconds)
        )
        length = len(body) if isinstance(body, bytes) else body.seek(0, 2)
        if not isinstance(body, bytes):
            body.seek(0)
        own = {
            "Authorization": f"Bearer {self._token}", "User-Agent": f"validator/{__version__}",
            "Content-Length": str(length),
        }  # fmt: skip
        try:
            connection.request(method, self._place + what, body, {**own, **headers})
            response = connection.getresponse()
            return Pushed(response.status, _sentence(response.read(1 << 16), response.status))
        except (OSError, http.client.HTTPException) as error:
            return Pushed(0, f"{host} could not be reached: {error}.")
        finally:
            connection.close()


def _sentence(body: bytes, status: int) -> str:
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return f"The service answered with {status}."
