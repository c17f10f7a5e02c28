"""The calls of GitHub's API that this project makes, on one repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from validator.errors import UsageError
from validator.github.errors import RefusedError
from validator.github.transport import Transport

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_NOT_FOUND = 404

Json = dict[str, Any]


@final
@dataclass(frozen=True, slots=True)
class Repository:
    """``name`` is ``owner/name``. Raises ``UsageError`` for anything else."""

    transport: Transport
    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"{self.name!r} is no OWNER/NAME of a repository; change --repository.")

    @property
    def path(self) -> str:
        return f"/repos/{self.name}"

    # Check runs

    def check_runs(self, commit: str, name: str) -> list[Json]:
        """All check runs of that name on the commit, newest first, whoever made them."""
        path = f"{self.path}/commits/{commit}/check-runs"
        return list(self.transport.pages(path, "check_runs", check_name=name, filter="all"))

    def check_run(self, number: int) -> Json:
        answer: Json = self.transport.get(f"{self.path}/check-runs/{number}")
        return answer

    def create_check_run(self, body: Mapping[str, object]) -> Json:
        answer: Json = self.transport.post("POST", f"{self.path}/check-runs", body)
        return answer

    def update_check_run(self, number: int, body: Mapping[str, object]) -> Json:
        """Annotations are added to those that are there, so this is never repeated blindly."""
        answer: Json = self.transport.post("PATCH", f"{self.path}/check-runs/{number}", body)
        return answer

    # Pull requests and comments

    def pull(self, number: int) -> Json:
        answer: Json = self.transport.get(f"{self.path}/pulls/{number}")
        return answer

    def pulls_from(self, branch: str) -> list[Json]:
        """Open pull requests from a branch written ``owner:branch``: forks' are only found this way."""
        return list(self.transport.pages(f"{self.path}/pulls", state="open", head=branch))

    def open_pull(self, title: str, head: str, base: str, body: str) -> Json:
        answer: Json = self.transport.post(
            "POST", f"{self.path}/pulls", {"title": title, "head": head, "base": base, "body": body}
        )
        return answer

    def comments(self, number: int) -> Iterator[Json]:
        return self.transport.pages(f"{self.path}/issues/{number}/comments")

    def create_comment(self, number: int, text: str) -> Json:
        answer: Json = self.transport.post("POST", f"{self.path}/issues/{number}/comments", {"body": text})
        return answer

    def update_comment(self, number: int, text: str) -> Json:
        answer: Json = self.transport.put("PATCH", f"{self.path}/issues/comments/{number}", {"body": text})
        return answer

    # Results

    def artifacts(self, run: int) -> list[Json]:
        return list(self.transport.pages(f"{self.path}/actions/runs/{run}/artifacts", "artifacts"))

    def artifact(self, number: int, limit: int) -> bytes:
        """The artifact as a zip of at most ``limit`` bytes."""
        return self.transport.download(f"{self.path}/actions/artifacts/{number}/zip", limit)

    # Runs

    def runs(self, workflow: int, event: str) -> Iterator[Json]:
        """Runs of a workflow that an event of that type started, newest first."""
        return self.transport.pages(f"{self.path}/actions/workflows/{workflow}/runs", "workflow_runs", event=event)

    def cancel_run(self, number: int) -> None:
        """Ask for a run's end. Asking twice does the same. Raises ``RefusedError`` with 409 where it has ended."""
        self.transport.put("POST", f"{self.path}/actions/runs/{number}/cancel", {})

    # Git

    def commit(self, commit: str) -> Json:
        answer: Json = self.transport.get(f"{self.path}/git/commits/{commit}")
        return answer

    def create_blob(self, content: str) -> Json:
        """A blob of base64 text; the same content gives the same blob."""
        answer: Json = self.transport.put("POST", f"{self.path}/git/blobs", {"content": content, "encoding": "base64"})
        return answer

    def create_tree(self, base: str, entries: Sequence[Mapping[str, object]]) -> Json:
        answer: Json = self.transport.put("POST", f"{self.path}/git/trees", {"base_tree": base, "tree": list(entries)})
        return answer

    def create_commit(self, body: Mapping[str, object]) -> Json:
        """A commit with dates of its own is the same object when it is made again."""
        answer: Json = self.transport.put("POST", f"{self.path}/git/commits", body)
        return answer

    def branch(self, name: str) -> str | None:
        """The commit of a branch, ``None`` where there is no such branch."""
        try:
            answer = self.transport.get(f"{self.path}/git/ref/heads/{name}")
        except RefusedError as error:
            if error.status == _NOT_FOUND:
                return None
            raise
        return str(answer["object"]["sha"])

    def create_branch(self, name: str, commit: str) -> Json:
        answer: Json = self.transport.post(
            "POST", f"{self.path}/git/refs", {"ref": f"refs/heads/{name}", "sha": commit}
        )
        return answer

    def move_branch(self, name: str, commit: str) -> Json:
        """Forward only: GitHub refuses where somebody pushed in between."""
        answer: Json = self.transport.put(
            "PATCH", f"{self.path}/git/refs/heads/{name}", {"sha": commit, "force": False}
        )
        return answer
