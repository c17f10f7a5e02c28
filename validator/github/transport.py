"""Requests to GitHub that survive what GitHub does: rate limits, 5xx, time-outs, expired tokens, lost answers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import requests
from github3.session import GitHubSession

from validator.github.credentials import Credentials
from validator.github.errors import ForgedResultError, GitHubError, LostAnswerError, RefusedError

#: A request is tried this often; with the waits below that is about a minute.
ATTEMPTS = 6

#: The longest wait for a rate limit, in seconds: longer ones end with a sentence.
LONGEST_WAIT = 900.0

#: Seconds until a connection must stand, and until an answer must begin.
CONNECT_SECONDS, READ_SECONDS = 5, 30

#: Seconds before the second attempt; each further one waits twice as long.
BACK_OFF = 1.0

_PER_PAGE = 100
_MOST_PAGES = 100


@final
@dataclass(slots=True)
class Transport:
    """GitHub's REST API at ``url``. ``sleep`` and ``clock`` are handed in for tests."""

    url: str
    credentials: Credentials
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.time
    _session: GitHubSession = field(init=False)

    def __post_init__(self) -> None:
        self._session = GitHubSession(default_connect_timeout=CONNECT_SECONDS, default_read_timeout=READ_SECONDS)
        self._session.base_url = self.url.rstrip("/")

    def get(self, path: str, **parameters: str | int) -> Any:
        """The answer's JSON. Raises ``GitHubError``."""
        return self._request("GET", path, parameters=parameters).json()

    def pages(self, path: str, key: str | None = None, **parameters: str | int) -> Iterator[dict[str, Any]]:
        """All elements of a list that comes in pages; ``key`` is where an answer has it."""
        for page in range(1, _MOST_PAGES + 1):
            answer = self.get(path, per_page=_PER_PAGE, page=page, **parameters)
            items = answer if key is None else answer[key]
            yield from items
            if len(items) < _PER_PAGE:
                return

    def put(self, method: str, path: str, body: Mapping[str, object]) -> Any:
        """A request that does the same when it is made twice (PUT, DELETE, and PATCH that replaces)."""
        return self._request(method, path, body=body).json()

    def post(self, method: str, path: str, body: Mapping[str, object]) -> Any:
        """A request that must not be made twice. Raises ``LostAnswerError`` where it may have been carried out."""
        return self._request(method, path, body=body, repeatable=False).json()

    def tell(self, path: str, body: Mapping[str, object]) -> None:
        """A POST whose answer has no content and that must not be made twice. Raises like :meth:`post`."""
        self._request("POST", path, body=body, repeatable=False)

    def once(self, find: Callable[[], Any], make: Callable[[], Any]) -> Any:
        """What ``find`` finds, else what ``make`` makes; after a lost answer it is looked for before it is made again.

        ``find`` returns ``None`` for nothing; ``make`` goes through :meth:`post`.
        """
        for attempt in range(ATTEMPTS):
            found = find()
            if found is not None:
                return found
            try:
                return make()
            except LostAnswerError:
                self._back_off(attempt)
        raise GitHubError(f"GitHub at {self.url} lost {ATTEMPTS} answers; try again later.")

    def download(self, path: str, limit: int) -> bytes:
        """At most ``limit`` bytes of a file; raises ``ForgedResultError`` for a larger one."""
        response = self._request("GET", path, stream=True)
        content = bytearray()
        try:
            for piece in response.iter_content(1 << 16):
                content += piece
                if len(content) > limit:
                    raise ForgedResultError(f"{path} has more than the {limit} bytes that are accepted.")
        except requests.RequestException as error:
            raise GitHubError(f"{path} could not be read whole ({type(error).__name__}); try again.") from error
        finally:
            response.close()
        return bytes(content)

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, object] | None
    ) -> dict[str, object]:
        """A request of the credentials' own. A token that is made twice is one token too many, and no more."""
        answer: dict[str, object] = self._request(method, path, body=body, headers=headers).json()
        return answer

    def _request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        parameters: Mapping[str, str | int] | None = None,
        repeatable: bool = True,
        stream: bool = False,
    ) -> requests.Response:
        url = self._session.build_url(*path.strip("/").split("/"))
        renewed = False
        problem = ""
        for attempt in range(ATTEMPTS):
            who = self.credentials.headers(self._ask) if headers is None else headers
            try:
                response: requests.Response = self._session.request(
                    method, url, json=body, params=parameters, headers=dict(who), stream=stream
                )
            except requests.ConnectTimeout:
                problem = "does not answer"
            except requests.RequestException as error:
                problem = f"broke off ({type(error).__name__})"
                if not repeatable and not _never_sent(error):
                    raise LostAnswerError(f"GitHub {problem} in {method} {path}.") from error
            else:
                if response.ok:
                    return response
                if response.status_code == requests.codes.unauthorized and headers is None and not renewed:
                    renewed = True
                    if self.credentials.renew():
                        continue
                wait = self._rate_limit(response)
                if wait is not None:
                    self.sleep(wait)
                    problem = "limits the rate of requests"
                    continue
                if response.status_code < requests.codes.internal_server_error:
                    raise RefusedError(_refusal(response, method, path), response.status_code)
                problem = f"answers {response.status_code}"
                if not repeatable:
                    raise LostAnswerError(f"GitHub {problem} to {method} {path}.")
            self._back_off(attempt)
        raise GitHubError(f"GitHub at {self.url} {problem}; try again later.")

    def _rate_limit(self, response: requests.Response) -> float | None:
        """Seconds to wait, ``None`` where the answer is about something else. Raises ``GitHubError`` for too long."""
        if response.status_code not in (requests.codes.forbidden, requests.codes.too_many_requests):
            return None
        headers = response.headers
        wait: float
        if headers.get("retry-after", "").isdigit():
            wait = float(headers["retry-after"])
        elif headers.get("x-ratelimit-remaining") == "0" and headers.get("x-ratelimit-reset", "").isdigit():
            wait = float(headers["x-ratelimit-reset"]) - self.clock() + 1
        elif response.status_code == requests.codes.too_many_requests or "rate limit" in response.text.lower():
            wait = 60.0
        else:
            return None
        if wait > LONGEST_WAIT:
            raise GitHubError(f"GitHub's rate limit ends in {wait:.0f} s, longer than is waited; try again then.")
        return max(1.0, wait)

    def _back_off(self, attempt: int) -> None:
        spread = random.uniform(0.8, 1.2)  # noqa: S311 - keeps clients apart, hides nothing
        self.sleep(min(30.0, BACK_OFF * 2.0**attempt) * spread)


def _never_sent(error: requests.RequestException) -> bool:
    """The connection was refused: GitHub cannot have acted."""
    return isinstance(error, requests.ConnectionError) and "NewConnectionError" in repr(error)


def _refusal(response: requests.Response, method: str, path: str) -> str:
    try:
        content = response.json()
        message = content.get("message", "") if isinstance(content, dict) else ""
    except ValueError:
        message = ""
    return f"GitHub refuses {method} {path} with {response.status_code}: {' '.join(str(message).split())[:300]}"
