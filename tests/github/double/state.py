"""What the double of GitHub remembers; its git objects lie in a real repository."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.github.double.description import complete

REPOSITORY = "/repos/{owner}/{repo}"
LIMIT = 65_535

Json = dict[str, Any]


class RefusedError(Exception):
    """GitHub says no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class State:
    """``git`` is a bare repository. ``app`` is the App that speaks now; 15368 is GitHub Actions itself."""

    name: str
    git: Path
    check_runs: list[Json] = field(default_factory=list)
    comments: list[Json] = field(default_factory=list)
    pulls: list[Json] = field(default_factory=list)
    artifacts: dict[int, bytes] = field(default_factory=dict)
    artifact_names: dict[int, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    runs: list[Json] = field(default_factory=list)
    next: int = 1

    def number(self) -> int:
        self.next += 1
        return self.next

    # Check runs

    def create_check_run(self, body: Json, app: int) -> Json:
        if self._git("cat-file", "-t", body["head_sha"], check=False) != "commit":
            raise RefusedError(422, f"No commit found for SHA: {body['head_sha']}")
        run = complete((f"{REPOSITORY}/check-runs", "post"), "201", id=self.number(), head_sha=body["head_sha"])
        run |= {"name": body["name"], "external_id": body.get("external_id"), "status": "queued", "conclusion": None}
        run |= {"app": {"id": app}, "annotations": [], "details_url": None}
        run["output"] = {"title": None, "summary": None, "text": None, "annotations_count": 0}
        self._apply(run, body)
        self.check_runs.append(run)
        return run

    def update_check_run(self, number: int, body: Json, app: int) -> Json:
        run = self.check_run(number)
        if run["app"]["id"] != app:
            raise RefusedError(403, "Only the GitHub App that created the check run can modify it.")
        self._apply(run, body)
        return run

    def check_run(self, number: int) -> Json:
        for run in self.check_runs:
            if run["id"] == number:
                return run
        raise RefusedError(404, "Not Found")

    def runs_of(self, commit: str, name: str | None) -> list[Json]:
        return [run for run in reversed(self.check_runs) if run["head_sha"] == commit and name in (None, run["name"])]

    def _apply(self, run: Json, body: Json) -> None:
        """The rules that the schema does not say."""
        if body.get("status") == "completed" and not body.get("conclusion"):
            raise RefusedError(422, "conclusion is required when status is completed")
        output = body.get("output") or {}
        for key in ("summary", "text"):
            if len(output.get(key) or "") > LIMIT:
                raise RefusedError(422, f"Only {LIMIT} characters are allowed; {len(output[key])} were supplied.")
        if output and not (output.get("title") and output.get("summary")):
            raise RefusedError(422, "output needs a title and a summary")
        for annotation in output.get("annotations", ()):
            if annotation["end_line"] < annotation["start_line"]:
                raise RefusedError(422, "end_line before start_line")
            if annotation["path"].startswith("/"):
                raise RefusedError(422, "annotation path is absolute")
        for key in ("name", "status", "details_url", "external_id"):
            if key in body:
                run[key] = body[key]
        if "status" in body and body["status"] != "completed":
            run["conclusion"] = None
        if body.get("conclusion"):
            run |= {"status": "completed", "conclusion": body["conclusion"]}
        run["annotations"] += output.get("annotations", [])
        run["output"] |= {key: output[key] for key in ("title", "summary", "text") if key in output}
        run["output"]["annotations_count"] = len(run["annotations"])

    # Runs of workflows, newest first

    def cancel(self, number: int) -> Json:
        run = next((run for run in self.runs if run["id"] == number), None)
        if run is None:
            raise RefusedError(404, "Not Found")
        if run["status"] == "completed":
            raise RefusedError(409, "Cannot cancel a workflow run that is completed.")
        run |= {"status": "completed", "conclusion": "cancelled"}
        return {}

    # Pull requests and comments

    def add_pull(self, branch: str, commit: str, base: str, fork: str | None = None) -> Json:
        """An open pull request of a branch to ``base``; ``fork`` is ``owner/name`` of another repository."""
        pull = complete((f"{REPOSITORY}/pulls/{{pull_number}}", "get"), number=self.number(), state="open")
        repo = fork or self.name
        owner = repo.partition("/")[0]
        pull["head"] = {"ref": branch, "sha": commit, "label": f"{owner}:{branch}", "repo": {"full_name": repo}}
        pull["base"] = {"ref": base, "sha": self._git("rev-parse", f"refs/heads/{base}"), "label": base}
        self._git("update-ref", f"refs/pull/{pull['number']}/head", commit)
        self.pulls.append(pull)
        return pull

    def pull(self, number: int) -> Json:
        for pull in self.pulls:
            if pull["number"] == number:
                self._follow(pull)
                return pull
        raise RefusedError(404, "Not Found")

    def pulls_of(self, head: str | None) -> list[Json]:
        for pull in self.pulls:
            self._follow(pull)
        return [pull for pull in self.pulls if pull["state"] == "open" and head in (None, pull["head"]["label"])]

    def open_pull(self, body: Json) -> Json:
        label = f"{self.name.partition('/')[0]}:{body['head']}"
        if self.pulls_of(label):
            raise RefusedError(422, f"A pull request already exists for {label}.")
        commit = self._git("rev-parse", f"refs/heads/{body['head']}")
        pull = self.add_pull(body["head"], commit, body["base"])
        pull |= {"title": body["title"], "body": body["body"]}
        return pull

    def _follow(self, pull: Json) -> None:
        """The head of a branch of this repository is where the branch is."""
        if pull["head"]["repo"]["full_name"] == self.name:
            found = self._git("rev-parse", "--verify", "-q", f"refs/heads/{pull['head']['ref']}", check=False)
            pull["head"]["sha"] = found or pull["head"]["sha"]
            self._git("update-ref", f"refs/pull/{pull['number']}/head", pull["head"]["sha"])

    def create_comment(self, issue: int, body: Json, user: Json) -> Json:
        if len(body["body"]) > LIMIT + 1:
            raise RefusedError(422, "Body is too long")
        operation = (f"{REPOSITORY}/issues/{{issue_number}}/comments", "post")
        comment = complete(operation, "201", id=self.number(), body=body["body"], user=user, issue=issue)
        self.comments.append(comment)
        return comment

    def update_comment(self, number: int, body: Json, user: Json) -> Json:
        for comment in self.comments:
            if comment["id"] == number:
                if comment["user"] != user:
                    raise RefusedError(403, "Resource not accessible by integration")
                comment["body"] = body["body"]
                return comment
        raise RefusedError(404, "Not Found")

    # Git

    def create_blob(self, body: Json) -> Json:
        content = base64.b64decode(body["content"]) if body["encoding"] == "base64" else body["content"].encode()
        sha = self._git("hash-object", "-w", "--stdin", data=content)
        return complete((f"{REPOSITORY}/git/blobs", "post"), "201", sha=sha)

    def create_tree(self, body: Json) -> Json:
        index = {"GIT_INDEX_FILE": str(self.git / f"index-{self.number()}")}
        if body.get("base_tree"):
            self._git("read-tree", body["base_tree"], variables=index)
        for entry in body["tree"]:
            if entry.get("sha") is None:
                self._git("update-index", "--force-remove", entry["path"], variables=index)
            else:
                what = f"{entry['mode']},{entry['sha']},{entry['path']}"
                self._git("update-index", "--add", "--cacheinfo", what, variables=index)
        return complete((f"{REPOSITORY}/git/trees", "post"), "201", sha=self._git("write-tree", variables=index))

    def create_commit(self, body: Json) -> Json:
        parents = [word for parent in body["parents"] for word in ("-p", parent)]
        sha = self._git("commit-tree", body["tree"], *parents, data=body["message"].encode())
        return self.commit(sha)

    def commit(self, sha: str) -> Json:
        operation = (f"{REPOSITORY}/git/commits/{{commit_sha}}", "get")
        parents = self._git("rev-list", "--parents", "-n1", sha).split()[1:]
        return complete(
            operation, sha=sha, tree={"sha": self._git("rev-parse", f"{sha}^{{tree}}")},
            message=self._git("log", "-1", "--format=%B", sha), parents=[{"sha": each} for each in parents],
        )  # fmt: skip

    def ref(self, name: str) -> Json:
        sha = self._git("rev-parse", "--verify", "-q", f"refs/{name}", check=False)
        if not sha:
            raise RefusedError(404, "Not Found")
        return complete(
            (f"{REPOSITORY}/git/ref/{{ref}}", "get"), ref=f"refs/{name}", object={"sha": sha, "type": "commit"}
        )

    def create_ref(self, body: Json) -> Json:
        if self._git("rev-parse", "--verify", "-q", body["ref"], check=False):
            raise RefusedError(422, "Reference already exists")
        self._git("update-ref", body["ref"], body["sha"])
        return self.ref(body["ref"].removeprefix("refs/"))

    def move_ref(self, name: str, body: Json) -> Json:
        old = self._git("rev-parse", f"refs/{name}")
        if not body.get("force") and self._git("merge-base", old, body["sha"], check=False) != old:
            raise RefusedError(422, "Update is not a fast forward")
        self._git("update-ref", f"refs/{name}", body["sha"])
        return self.ref(name)

    def _git(
        self, *words: str, check: bool = True, data: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> str:
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _APP.items()}
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **who, **(variables or {})}
        done = subprocess.run(
            ["git", "-C", str(self.git), *words], input=data, capture_output=True, env=environment, check=False
        )
        if check and done.returncode:
            raise RefusedError(422, done.stderr.decode())
        return done.stdout.decode().strip()


_APP = {"NAME": "validator[bot]", "EMAIL": "validator@bots.example"}
