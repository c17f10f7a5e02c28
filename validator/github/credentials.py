"""Who speaks to GitHub: an installed GitHub App, or the weaker token of the workflow."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol, final

from github3.apps import create_jwt_headers
from github3.session import GitHubSession

from validator.errors import UsageError
from validator.github.errors import RefusedError

#: A token is renewed this long before it expires.
_MARGIN = timedelta(minutes=2)


class Credentials(Protocol):
    """Headers for the next request, and whether new ones can be had where GitHub says that these expired."""

    def headers(self, session: GitHubSession) -> Mapping[str, str]: ...
    def renew(self) -> bool: ...


@final
@dataclass(frozen=True, slots=True)
class WorkflowToken:
    """A token that somebody else made, such as the one of the workflow's run."""

    token: str

    def headers(self, session: GitHubSession) -> Mapping[str, str]:  # noqa: ARG002 - it needs no request
        return {"Authorization": f"token {self.token}"}

    def renew(self) -> bool:
        return False


@final
@dataclass(slots=True)
class App:
    """A GitHub App, installed for the repository: its tokens last an hour and are renewed as needed.

    ``key`` is the private key as PEM. Raises ``UsageError`` where the key is none.
    """

    identity: str
    key: bytes
    repository: str
    clock: Callable[[], float] = time.time
    _token: str = ""
    _expires: float = field(default=0.0)

    def headers(self, session: GitHubSession) -> Mapping[str, str]:
        if self.clock() >= self._expires - _MARGIN.total_seconds():
            self._mint(session)
        return {"Authorization": f"token {self._token}"}

    def renew(self) -> bool:
        self._expires = 0.0
        return True

    def _mint(self, session: GitHubSession) -> None:
        try:
            own = create_jwt_headers(self.key, self.identity, expire_in=540)
        except (ValueError, TypeError) as error:
            raise UsageError("VALIDATOR_APP_KEY is no private key in PEM form; copy the App's key whole.") from error
        where = session.build_url("repos", *self.repository.split("/"), "installation")
        installation = _answer(session.request("GET", where, headers=own), 200)
        url = session.build_url("app", "installations", str(installation["id"]), "access_tokens")
        body = {"repositories": [self.repository.partition("/")[2]]}
        token = _answer(session.request("POST", url, json=body, headers=own), 201)
        self._token = str(token["token"])
        self._expires = datetime.fromisoformat(str(token["expires_at"])).timestamp()


def credentials_from(variables: Mapping[str, str], repository: str) -> Credentials:
    """The App of ``VALIDATOR_APP_ID`` and ``VALIDATOR_APP_KEY`` (or a file, ``VALIDATOR_APP_KEY_FILE``), else
    ``GITHUB_TOKEN``. Raises ``UsageError`` where there is neither.
    """
    identity, key = variables.get("VALIDATOR_APP_ID", ""), variables.get("VALIDATOR_APP_KEY", "")
    file = variables.get("VALIDATOR_APP_KEY_FILE", "")
    if identity and not key and file:
        try:
            key = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file} cannot be read; let VALIDATOR_APP_KEY_FILE name the App's key.") from error
    if identity and key:
        return App(identity, key.encode(), repository)
    token = variables.get("GITHUB_TOKEN", "")
    if not token:
        raise UsageError(
            "There is nobody to speak to GitHub as; set VALIDATOR_APP_ID and VALIDATOR_APP_KEY, or GITHUB_TOKEN."
        )
    return WorkflowToken(token)


def _answer(response: object, status: int) -> dict[str, object]:
    found = getattr(response, "status_code", 0)
    if found != status:
        raise RefusedError(f"GitHub gave the App no token (status {found}); is it installed for the repository?", found)
    content: dict[str, object] = response.json()  # type: ignore[attr-defined]
    return content
