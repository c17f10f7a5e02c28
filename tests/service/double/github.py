"""The double of GitHub, with what the service asks for beyond publishing: workflows, deliveries, teams, files."""

from __future__ import annotations

import base64
import re
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.github.double.description import complete
from tests.github.double.server import APP, Double
from tests.github.double.state import REPOSITORY, Json, RefusedError


@dataclass
class ServiceDouble(Double):
    """``workflow_runs`` are newest first; ``deliveries`` are the App's, newest first, with their payloads.

    ``files`` are the default branch's by path, ``members`` logins by ``organization/team``, ``permissions`` by login.
    """

    workflow_runs: list[Json] = field(default_factory=list)
    dispatched: list[tuple[str, Json]] = field(default_factory=list)
    deliveries: list[Json] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    members: dict[str, set[str]] = field(default_factory=dict)
    permissions: dict[str, str] = field(default_factory=dict)

    def missed(self, event: str, guid: str, payload: Json, status: int = 503) -> None:
        """GitHub tried to deliver this, and was answered with ``status``."""
        number = self.state.number()
        row = complete(("/app/hook/deliveries/{delivery_id}", "get"), id=number, guid=guid, event=event)
        row |= {"status_code": status, "status": "Service Unavailable", "delivered_at": _now(), "redelivery": False}
        row["request"] = {"headers": {}, "payload": payload}
        self.deliveries.insert(0, row)

    def end_run(self, number: int, conclusion: str) -> None:
        """A workflow run comes to its end."""
        self._run(number).update(status="completed", conclusion=conclusion)

    def _app(self, path: str, authorization: str) -> int:
        if path.startswith("/app/hook/"):
            return super()._app("/installation", authorization)
        return super()._app(path, authorization)

    def _route(self, method: str, path: str, arguments: dict[str, str], body: Json, app: int) -> Any:
        if path.startswith("/app/hook/"):
            assert app == APP
            return 200, self._delivery(path), {}
        member = re.fullmatch(r"/orgs/([^/]+)/teams/([^/]+)/memberships/([^/]+)", path)
        if member:
            if member[3] not in self.members.get(f"{member[1]}/{member[2]}", ()):
                raise RefusedError(404, "Not Found")
            return 200, {"state": "active", "role": "member", "url": ""}, {}
        own = path.removeprefix(f"/repos/{self.state.name}")
        if (method, own) == ("GET", ""):
            return 200, complete((REPOSITORY, "get"), full_name=self.state.name, default_branch="main"), {}
        if own.startswith("/contents/"):
            return 200, self._file(own.removeprefix("/contents/")), {}
        person = re.fullmatch(r"/collaborators/([^/]+)/permission", own)
        if person:
            permission = self.permissions.get(person[1], "read")
            return 200, {"permission": permission, "role_name": permission, "user": None}, {}
        pull = re.fullmatch(r"/pulls/(\d+)", own)
        if pull and method == "GET":
            found = self.state.pull(int(pull[1]))
            found["base"]["repo"] = {"full_name": self.state.name}
            return 200, found, {}
        if own.startswith("/check-runs") and method != "GET":
            status, run, headers = super()._route(method, path, arguments, body, app)
            run["actions"] = body.get("actions", run.get("actions", []))
            return status, run, headers
        actions = self._actions(method, own, arguments, body)
        return actions if actions is not None else super()._route(method, path, arguments, body, app)

    def _actions(self, method: str, own: str, arguments: dict[str, str], body: Json) -> Any:
        dispatch = re.fullmatch(r"/actions/workflows/([^/]+)/dispatches", own)
        if dispatch:
            self.dispatched.append((dispatch[1], body))
            title = f"{dispatch[1]} {body.get('inputs', {}).get('key', '')}"
            self.workflow_runs.insert(0, self._new_run(dispatch[1], title))
            return 204, b"", {}
        listed = re.fullmatch(r"/actions/workflows/([^/]+)/runs", own)
        if listed:
            runs = [run for run in self.workflow_runs if run["workflow"] == listed[1]]
            return 200, {"total_count": len(runs), "workflow_runs": runs}, {}
        one = re.fullmatch(r"/actions/runs/(\d+)(/cancel)?", own)
        if one and not one[2]:
            return 200, self._run(int(one[1])), {}
        if one and method == "POST":
            run = self._run(int(one[1]))
            if run["status"] == "completed":
                raise RefusedError(409, "Cannot cancel a workflow run that is completed.")
            run.update(status="completed", conclusion="cancelled")
            return 202, {}, {}
        return None

    def _new_run(self, workflow: str, title: str) -> Json:
        run = complete((f"{REPOSITORY}/actions/runs/{{run_id}}", "get"), id=self.state.number(), display_title=title)
        return run | {
            "status": "queued",
            "conclusion": None,
            "created_at": _now(),
            "workflow": workflow,
            "name": "check",
        }

    def _run(self, number: int) -> Json:
        for run in self.workflow_runs:
            if run["id"] == number:
                return run
        raise RefusedError(404, "Not Found")

    def _delivery(self, path: str) -> Any:
        number = path.rpartition("/")[2]
        if number == "deliveries":
            return [{key: value for key, value in row.items() if key != "request"} for row in self.deliveries]
        for row in self.deliveries:
            if str(row["id"]) == number:
                return row
        raise RefusedError(404, "Not Found")

    def _file(self, path: str) -> Json:
        if path not in self.files:
            raise RefusedError(404, "Not Found")
        content = base64.b64encode(self.files[path].encode()).decode()
        return {"type": "file", "encoding": "base64", "content": content, "path": path, "sha": "0" * 40, "size": 1}


def _now() -> str:
    return datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
