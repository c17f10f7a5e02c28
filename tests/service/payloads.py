"""What GitHub sends, cut to what counts."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from validator.service.webhooks.signature import sign

NAME = "team/train"
SECRET = "a-webhook-secret"  # noqa: S105 - known to nobody but the tests
APP = 4711

Json = dict[str, Any]


def commit(word: str) -> str:
    """A commit that is only a name."""
    return hashlib.sha256(word.encode()).hexdigest()[:40]


def pull_request(
    sha: str, number: int = 7, action: str = "synchronize", at: str = "2026-11-29T10:00:00Z", fork: str = NAME,
    base: str = "",
) -> Json:  # fmt: skip
    head = {"sha": sha, "ref": "change", "repo": {"full_name": fork}}
    pull = {"number": number, "updated_at": at, "head": head, "base": {"ref": "main", "repo": {"full_name": NAME}}}
    if base:
        pull["base"] |= {"sha": base}  # type: ignore[operator]
    return {"action": action, "number": number, "pull_request": pull, **_common()}


def check_suite(
    sha: str,
    branch: str = "main",
    action: str = "requested",
    at: str = "2026-11-29T10:00:00Z",
    pulls: tuple[int, ...] = (),
) -> Json:
    suite = {
        "id": 5, "head_sha": sha, "head_branch": branch, "updated_at": at, "app": {"id": APP},
        "pull_requests": [{"number": number} for number in pulls],
    }  # fmt: skip
    return {"action": action, "check_suite": suite, **_common()}


def check_run(
    number: int, external_id: str, action: str = "rerequested", button: str = "", person: str = "ann"
) -> Json:
    run = {"id": number, "head_sha": commit("head"), "external_id": external_id, "app": {"id": APP}}
    pressed = {"requested_action": {"identifier": button}} if button else {}
    return {"action": action, "check_run": run, **pressed, **_common(person)}


def merge_group(
    sha: str, ref: str = "gh-readonly-queue/main/pr-7-abc", action: str = "checks_requested", at: str = ""
) -> Json:
    group: Json = {"head_sha": sha, "head_ref": f"refs/heads/{ref}"}
    return {"action": action, "merge_group": group | ({"head_commit": {"timestamp": at}} if at else {}), **_common()}


def comment(text: str, number: int = 7, identity: int = 1, person: str = "ann") -> Json:
    issue = {"number": number, "pull_request": {"url": ""}}
    return {"action": "created", "issue": issue, "comment": {"id": identity, "body": text}, **_common(person)}


def image(sha: str, digest: str) -> Json:
    version = {"version": f"sha256:{digest}", "target_oid": sha}
    package = {"name": "Train", "namespace": "team", "package_type": "CONTAINER", "package_version": version}
    return {"action": "published", "registry_package": package, **_common()}


def headers(event: str, body: bytes, guid: str, secret: str = SECRET) -> dict[str, str]:
    return {
        "Content-Type": "application/json", "X-GitHub-Event": event, "X-GitHub-Delivery": guid,
        "X-Hub-Signature-256": sign(secret, body),
    }  # fmt: skip


def encoded(payload: Json) -> bytes:
    return json.dumps(payload).encode()


def _common(person: str = "ann") -> Json:
    return {
        "repository": {"full_name": NAME, "default_branch": "main"}, "sender": {"login": person},
        "installation": {"id": 99},
    }  # fmt: skip
