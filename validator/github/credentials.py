"""Who speaks to GitHub: an installed GitHub App, or the weaker token of the workflow."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol, final

from github3.apps import create_jwt_headers
from jwt import PyJWTError

from validator.errors import UsageError
from validator.github.errors import GitHubError, RefusedError

#: A token is renewed this long before it expires.
_MARGIN = timedelta(minutes=2)


#: Makes one request with these headers, as often as it takes: method, path, headers, body; returns the answer's JSON.
Ask = Callable[[str, str, Mapping[str, str], Mapping[str, object] | None], dict[str, object]]


class Credentials(Protocol):
    """Headers for the next request, and whether new ones can be had where GitHub says that these expired."""

    def headers(self, ask: Ask) -> Mapping[str, str]: ...
    def renew(self) -> bool: ...


@final
@dataclass(frozen=True, slots=True)
class WorkflowToken:
    """A token that somebody else made, such as the one of the workflow's run."""

    token: str

    def headers(self, ask: Ask) -> Mapping[str, str]:  # noqa: ARG002 - it needs no request
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

    def headers(self, ask: Ask) -> Mapping[str, str]:
        if self.clock() >= self._expires - _MARGIN.total_seconds():
            self._mint(ask)
        return {"Authorization": f"token {self._token}"}

    def renew(self) -> bool:
        self._expires = 0.0
        return True

    def _mint(self, ask: Ask) -> None:
        try:
            own = create_jwt_headers(self.key, self.identity, expire_in=540)
        except (ValueError, TypeError, PyJWTError) as error:
            raise UsageError("VALIDATOR_APP_KEY is no private key in PEM form; copy the App's key whole.") from error
        try:
            installation = ask("GET", f"/repos/{self.repository}/installation", own, None)
            body = {"repositories": [self.repository.partition("/")[2]]}
            token = ask("POST", f"/app/installations/{installation['id']}/access_tokens", own, body)
            self._token = str(token["token"])
            self._expires = datetime.fromisoformat(str(token["expires_at"])).timestamp()
        except RefusedError as error:
            raise GitHubError(f"{error} The App gets no token; is it installed for {self.repository}?") from error


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
