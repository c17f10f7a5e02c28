"""GitHub as the service needs it, over ``validator.github``'s transport: the App's own token for what belongs to the
App, an installation's for what belongs to a repository.
"""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn, final

from github3.apps import create_jwt_headers

from validator.errors import UsageError
from validator.github.credentials import App, Credentials, WorkflowToken
from validator.github.errors import GitHubError as AnyGitHubError
from validator.github.errors import RefusedError
from validator.github.repository import Repository
from validator.github.transport import Transport
from validator.service.github import DeliveryRow, GitHubAwayError, GitHubError, Place, Pull, WorkflowRun

_PASSING = range(200, 300)
_NOT_FOUND = 404

#: Pages of the delivery list that are read at most, a hundred deliveries each.
_PAGES = 30


class _PatienceError(AnyGitHubError):
    """The transport would wait here; the service's own loops come back later instead."""

    def __init__(self, seconds: float) -> None:
        super().__init__("GitHub is away, or asks for patience.")
        self.seconds = seconds


@final
@dataclass(frozen=True, slots=True)
class _AppItself:
    """The App's own, short-lived token, for what belongs to no installation."""

    identity: str
    key: bytes

    def headers(self, _: object) -> Mapping[str, str]:
        try:
            headers: Mapping[str, str] = create_jwt_headers(self.key, self.identity, expire_in=540)
        except (ValueError, TypeError) as error:
            raise UsageError("VALIDATOR_GITHUB_PRIVATE_KEY is no private key in PEM form; copy it whole.") from error
        return headers

    def renew(self) -> bool:
        return False


@final
class GitHubApi:
    """Asks GitHub at ``url`` as an App (``app`` and ``key``), or with one ``token``. Threads may share it."""

    def __init__(
        self, url: str, app: str, key: str, token: str, clock: Callable[[], float] = time.time
    ) -> None:  # fmt: skip
        self._url = url
        self._app = app
        self._key = key.encode()
        self._token = token
        self._clock = clock
        self._kept = threading.local()

    def find_check_run(self, place: Place, commit: str, external_id: str) -> int | None:
        with _translated():
            path = f"/repos/{place.repository}/commits/{commit}/check-runs"
            for run in self._repository(place).transport.pages(path, "check_runs", filter="all"):
                if run.get("external_id") == external_id:
                    return int(run["id"])
        return None

    def create_check_run(self, place: Place, content: Mapping[str, Any]) -> int:
        with _translated():
            return int(self._repository(place).create_check_run(content)["id"])

    def update_check_run(self, place: Place, check_run: int, content: Mapping[str, Any]) -> None:
        with _translated():
            self._repository(place).update_check_run(check_run, content)

    def default_branch(self, place: Place) -> str:
        with _translated():
            return str(self._repository(place).transport.get(f"/repos/{place.repository}")["default_branch"])

    def file(self, place: Place, path: str, ref: str) -> str | None:
        found = self._if_there(place, f"/repos/{place.repository}/contents/{path}", ref=ref)
        if not isinstance(found, dict) or found.get("encoding") != "base64":
            return None
        return base64.b64decode(found["content"]).decode(errors="replace")

    def is_member(self, place: Place, organization: str, team: str, login: str) -> bool:
        found = self._if_there(place, f"/orgs/{organization}/teams/{team}/memberships/{login}")
        return isinstance(found, dict) and found.get("state") == "active"

    def permission(self, place: Place, login: str) -> str:
        found = self._if_there(place, f"/repos/{place.repository}/collaborators/{login}/permission")
        return str(found["permission"]) if isinstance(found, dict) else "none"

    def pull(self, place: Place, number: int) -> Pull:
        with _translated():
            found = self._repository(place).pull(number)
        head = found["head"]
        is_fork = (head.get("repo") or {}).get("full_name") != found["base"]["repo"]["full_name"]
        return Pull(number, str(head["sha"]), is_fork, found["state"] == "open", str(found["base"]["sha"]))

    def dispatch(self, place: Place, workflow: str, ref: str, inputs: Mapping[str, str]) -> None:
        path = f"/repos/{place.repository}/actions/workflows/{workflow}/dispatches"
        with _translated():
            self._repository(place).transport.tell(path, {"ref": ref, "inputs": dict(inputs)})

    def find_run(self, place: Place, workflow: str, key: str, since: float) -> WorkflowRun | None:
        path = f"/repos/{place.repository}/actions/workflows/{workflow}/runs"
        with _translated():
            for run in self._repository(place).transport.pages(path, "workflow_runs", event="workflow_dispatch"):
                if datetime.fromisoformat(run["created_at"]).timestamp() < since - 60:
                    break  # newest first; the clocks need not agree to the second
                if key in f"{run.get('display_title') or ''} {run.get('name') or ''}":
                    return _run(run)
        return None

    def run(self, place: Place, run: int) -> WorkflowRun:
        with _translated():
            return _run(self._repository(place).transport.get(f"/repos/{place.repository}/actions/runs/{run}"))

    def cancel_run(self, place: Place, run: int) -> None:
        with _translated():
            self._repository(place).transport.tell(f"/repos/{place.repository}/actions/runs/{run}/cancel", {})

    def failed_deliveries(self, since: float) -> Sequence[DeliveryRow]:
        if not self._app:
            return ()  # only an App has such a list
        acknowledged: set[str] = set()
        failed: dict[str, DeliveryRow] = {}
        for row in self._deliveries():
            delivered = datetime.fromisoformat(row["delivered_at"]).timestamp()
            if delivered < since:
                break
            guid = str(row["guid"])
            if row["status_code"] in _PASSING:
                acknowledged.add(guid)
            elif guid not in failed:
                failed[guid] = DeliveryRow(int(row["id"]), guid, str(row["event"]), delivered)
        rows = [row for guid, row in failed.items() if guid not in acknowledged]
        return sorted(rows, key=lambda row: row.delivered)

    def delivery(self, number: int) -> Mapping[str, Any]:
        with _translated():
            found = self._transport("").get(f"/app/hook/deliveries/{number}")
        payload = found["request"]["payload"]
        if not isinstance(payload, dict):
            raise GitHubError(f"The delivery {number} has no payload any more.")
        return payload

    def _deliveries(self) -> Iterator[Mapping[str, Any]]:
        """The App's deliveries, newest first. The list goes on after the last ID of a page."""
        query: dict[str, str | int] = {"per_page": 100}
        for _ in range(_PAGES):
            with _translated():
                rows = self._transport("").get("/app/hook/deliveries", **query)
            yield from rows
            if len(rows) < 100:
                return
            query["cursor"] = f"v1_{rows[-1]['id']}"

    def _if_there(self, place: Place, path: str, **parameters: str) -> Any:
        with _translated():
            try:
                return self._repository(place).transport.get(path, **parameters)
            except RefusedError as error:
                if error.status == _NOT_FOUND:
                    return None
                raise

    def _repository(self, place: Place) -> Repository:
        return Repository(self._transport(place.repository), place.repository)

    def _transport(self, repository: str) -> Transport:
        """One for each thread and repository, which keeps the installation's token."""
        transports: dict[str, Transport] | None = getattr(self._kept, "transports", None)
        if transports is None:
            transports = self._kept.transports = {}
        if repository not in transports:
            credentials: Credentials = WorkflowToken(self._token)
            if self._app:
                credentials = App(self._app, self._key, repository) if repository else _AppItself(self._app, self._key)
            transports[repository] = Transport(self._url, credentials, sleep=_come_back, clock=self._clock)
        return transports[repository]


def _come_back(seconds: float) -> NoReturn:
    raise _PatienceError(seconds)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except RefusedError as error:
        if error.status in (401, 408):
            raise GitHubAwayError(str(error)) from error
        raise GitHubError(str(error)) from error
    except _PatienceError as error:
        raise GitHubAwayError(str(error), error.seconds) from error
    except AnyGitHubError as error:
        raise GitHubAwayError(str(error)) from error
    except UsageError as error:
        raise GitHubError(str(error)) from error
    except (KeyError, TypeError, ValueError) as error:
        raise GitHubAwayError(f"GitHub's answer is not what it should be ({type(error).__name__}).") from error


def _run(found: Mapping[str, Any]) -> WorkflowRun:
    return WorkflowRun(
        int(found["id"]), str(found["status"]), str(found.get("conclusion") or ""), str(found["html_url"])
    )
