"""A stateful double of GitHub's REST API on loopback. Every request is judged by GitHub's own description first."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import jwt

from tests.github.double.description import problem_of
from tests.github.double.state import Json, RefusedError, State

ACTIONS_APP = 15368
APP = 4711
ACTIONS_TOKEN = "actions-token"  # noqa: S105 - the double's own

#: What a request meets instead of an answer: a status, ``drop before`` or ``drop after`` GitHub acted, ``slow``.
Fault = str


@dataclass
class Double:
    """The double as a test sees it. ``requests`` are method and path of all that came, ``bad`` what was not valid.

    ``trouble`` decides for each request (method, path, its count) what goes wrong, or ``None``.
    """

    state: State
    public_key: str
    url: str = ""
    requests: list[tuple[str, str]] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)
    tokens: dict[str, float] = field(default_factory=dict)
    token_seconds: float = 3600.0
    requests_a_token: int = 10**9
    trouble: Callable[[str, str, int], Fault | None] = lambda method, path, count: None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def writes(self) -> list[tuple[str, str]]:
        """Requests that change something, but for tokens."""
        return [each for each in self.requests if each[0] != "GET" and "access_tokens" not in each[1]]

    def handle(self, method: str, target: str, headers: Any, body: bytes) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON or bytes, headers."""
        parts = urlsplit(target)
        path = parts.path
        if path.startswith("/blobs/"):  # where artifacts are redirected to
            return 200, self.state.artifacts[int(path.rpartition("/")[2])], {}
        arguments = dict(parse_qsl(parts.query))
        problem = problem_of(method, path, arguments, body)
        if problem is not None:
            self.bad.append(f"{method} {path}: {problem}")
            return 422, {"message": problem}, {}
        app = self._app(path, headers.get("authorization", ""))
        try:
            return self._route(method, unquote(path), arguments, json.loads(body or b"{}"), app)
        except RefusedError as refused:
            return refused.status, {"message": str(refused)}, {}

    def _app(self, path: str, authorization: str) -> int:
        word, _, token = authorization.partition(" ")
        if word.lower() == "bearer" and (path.endswith(("/installation", "/access_tokens"))):
            claims = jwt.decode(token, self.public_key, algorithms=["RS256"])
            assert claims["iss"] == str(APP), claims
            return APP
        if token == ACTIONS_TOKEN:
            return ACTIONS_APP
        if self.tokens.get(token, 0.0) <= time.time():
            raise PermissionError
        uses = self.uses[token] = self.uses.get(token, 0) + 1
        if uses > self.requests_a_token:
            raise PermissionError
        return APP

    uses: dict[str, int] = field(default_factory=dict)

    def _route(
        self, method: str, path: str, arguments: dict[str, str], body: Json, app: int
    ) -> tuple[int, Any, dict[str, str]]:
        user = {"login": "validator[bot]" if app == APP else "github-actions[bot]", "type": "Bot", "id": app}
        state = self.state
        if path.startswith("/app/installations/"):
            token = f"token-{len(self.tokens)}"
            expires = time.time() + self.token_seconds
            self.tokens[token] = expires
            stamp = datetime.fromtimestamp(expires, UTC).isoformat().replace("+00:00", "Z")
            return 201, {"token": token, "expires_at": stamp, "permissions": {}}, {}
        own = path.removeprefix(f"/repos/{state.name}")
        if own == path:
            return self._setting(path)
        routes: list[tuple[str, str, Callable[..., Any], int]] = [
            ("GET", "/installation", lambda: {"id": 99}, 200),
            ("POST", "/check-runs", lambda: state.create_check_run(body, app), 201),
            ("GET", r"/check-runs/(\d+)", lambda n: state.check_run(int(n)), 200),
            ("PATCH", r"/check-runs/(\d+)", lambda n: state.update_check_run(int(n), body, app), 200),
            (
                "GET", "/commits/([^/]+)/check-runs",
                lambda ref: _listed("check_runs", state.runs_of(ref, arguments.get("check_name")), arguments), 200,
            ),
            ("GET", "/pulls", lambda: _page(state.pulls_of(arguments.get("head")), arguments), 200),
            ("POST", "/pulls", lambda: state.open_pull(body), 201),
            ("GET", r"/pulls/(\d+)", lambda n: state.pull(int(n)), 200),
            (
                "GET", r"/issues/(\d+)/comments",
                lambda n: _page([each for each in state.comments if each["issue"] == int(n)], arguments), 200,
            ),
            ("POST", r"/issues/(\d+)/comments", lambda n: state.create_comment(int(n), body, user), 201),
            ("PATCH", r"/issues/comments/(\d+)", lambda n: state.update_comment(int(n), body, user), 200),
            (
                "GET", r"/actions/runs/\d+/artifacts",
                lambda: _listed(
                    "artifacts",
                    [{"id": n, "name": name, "expired": False} for n, name in state.artifact_names.items()],
                    arguments,
                ), 200,
            ),
            (
                "GET", r"/actions/workflows/(\d+)/runs",
                lambda _: _listed(
                    "workflow_runs", [run for run in state.runs if run["event"] == arguments.get("event")], arguments
                ), 200,
            ),
            ("POST", r"/actions/runs/(\d+)/cancel", lambda n: state.cancel(int(n)), 202),
            ("POST", "/git/blobs", lambda: state.create_blob(body), 201),
            ("POST", "/git/trees", lambda: state.create_tree(body), 201),
            ("POST", "/git/commits", lambda: state.create_commit(body), 201),
            ("GET", "/git/commits/([0-9a-f]+)", state.commit, 200),
            ("GET", "/git/ref/(.+)", state.ref, 200),
            ("POST", "/git/refs", lambda: state.create_ref(body), 201),
            ("PATCH", "/git/refs/(.+)", lambda name: state.move_ref(name, body), 200),
        ]  # fmt: skip
        for verb, pattern, act, status in routes:
            match = re.fullmatch(pattern, own)
            if verb == method and match:
                return status, act(*match.groups()), {}
        zipped = re.fullmatch(r"/actions/artifacts/(\d+)/zip", own)
        if zipped:
            return 302, b"", {"Location": f"{self.url}/blobs/{zipped[1]}"}
        return self._setting(path)

    def _setting(self, path: str) -> tuple[int, Any, dict[str, str]]:
        if path not in self.state.settings:
            raise RefusedError(404, "Not Found")
        return 200, self.state.settings[path], {}


def _page(items: list[Any], arguments: dict[str, str]) -> list[Any]:
    size, page = int(arguments.get("per_page", 30)), int(arguments.get("page", 1))
    return items[(page - 1) * size : page * size]


def _listed(key: str, items: list[Any], arguments: dict[str, str]) -> Json:
    return {"total_count": len(items), key: _page(items, arguments)}


class Handler(BaseHTTPRequestHandler):
    """One connection. ``double`` is set on the subclass of each server."""

    protocol_version = "HTTP/1.1"
    double: Double

    def _any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = urlsplit(self.path).path
        double = self.double
        with double.lock:
            double.requests.append((self.command, path))
            fault = double.trouble(self.command, path, len(double.requests))
            if fault in (None, "drop after", "slow after"):
                try:
                    status, content, headers = double.handle(self.command, self.path, self.headers, body)
                except PermissionError:
                    status, content, headers = 401, {"message": "Bad credentials"}, {}
            else:
                status, content, headers = _failure(fault)
        if fault in ("drop before", "drop after"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if fault in ("slow", "slow after"):
            time.sleep(1.5)
        self._answer(status, content if isinstance(content, bytes) else json.dumps(content).encode(), headers)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _any

    def _answer(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # the client gave up

    def log_message(self, *words: Any) -> None:
        """Quiet."""


@contextmanager
def serving(double: Double) -> Iterator[Double]:
    """The double on a port of its own."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"double": double}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    double.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _failure(fault: str | None) -> tuple[int, Any, dict[str, str]]:
    if fault == "rate limit":
        headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(time.time()))}
        return 403, {"message": "API rate limit exceeded"}, headers
    if fault == "secondary rate limit":
        return 403, {"message": "You have exceeded a secondary rate limit"}, {"retry-after": "1"}
    if fault in ("drop before", "slow"):
        return 200, {}, {}
    return int(str(fault)), {"message": "Server Error"}, {}
