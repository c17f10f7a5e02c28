"""From one of GitHub's events to what it asks for. Pure; every event type is understood or ignored by intention."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from validator.errors import ValidatorError
from validator.service.webhooks.asks import (
    Abandon,
    Accept,
    Ask,
    CheckCommit,
    CheckPull,
    Nothing,
    RunAgain,
    Source,
)

Payload = Mapping[str, Any]

#: Identifiers of the buttons on a check run.
RUN_AGAIN, REBASELINE = "run_again", "rebaseline"

#: The comment that asks for a check; a fork's head has to be named.
COMMAND = "/validate"

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PREFIX = re.compile(r"[0-9a-f]{12,64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_GENERATION = re.compile(r"-[0-9a-f]{40}(?:[0-9a-f]{24})?$")
_LOGIN = re.compile(r"[A-Za-z0-9_.\[\]-]{1,100}")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}")


class MalformedEventError(ValidatorError):
    """A payload lacks what GitHub's documentation promises."""


def understand(event: str, payload: Payload, app: str) -> Ask:
    """What ``event`` asks for. ``app`` is the service's own GitHub App: check runs of others are none of its business.

    Raises ``MalformedEventError``.
    """
    reader = _READERS.get(event)
    if reader is None:
        return Nothing(f"Events of the type {_shown(event)} ask for nothing here.")
    try:
        return reader(payload, app)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise MalformedEventError(f"The {event} event lacks or garbles {_shown(error)}.") from error


def _check_run(payload: Payload, app: str) -> Ask:
    action, run = payload["action"], payload["check_run"]
    if action not in ("rerequested", "requested_action"):
        return _other("check_run", action)
    if app and str((run.get("app") or {}).get("id")) != app:
        return Nothing("The check run is another App's.")
    key = str(run.get("external_id") or "")
    source = _source(payload)
    if action == "rerequested":
        return RunAgain(source, key, f"check run {int(run['id'])}") if key else _again(run, source)
    identifier = payload["requested_action"]["identifier"]
    if identifier == RUN_AGAIN:
        return RunAgain(source, key, f"check run {int(run['id'])}")
    if identifier == REBASELINE:
        return Accept(source, key, f"check run {int(run['id'])}")
    return Nothing(f"The service has no button {_shown(identifier)}.")


def _again(run: Payload, source: Source) -> Ask:
    """A check run that some other program made for us: its commit is checked again."""
    suite = run.get("check_suite") or {}
    line, pull, base = _line(suite)
    subject = f"check run {int(run['id'])}"
    return CheckCommit(source, _commit(run["head_sha"]), line, pull, "rerun", subject, base=base)


def _check_suite(payload: Payload, app: str) -> Ask:
    action, suite = payload["action"], payload["check_suite"]
    if action not in ("requested", "rerequested"):
        return _other("check_suite", action)
    if app and str((suite.get("app") or {}).get("id")) != app:
        return Nothing("The check suite is another App's.")
    line, pull, base = _line(suite)
    commit = _commit(suite["head_sha"])
    if action == "rerequested":
        # Suites keep their ID when they are run again; the time tells one wish from the next.
        subject = f"suite {suite['id']} {suite['updated_at']}"
        return CheckCommit(_source(payload), commit, line, pull, "rerun", subject, base=base)
    default = (payload["repository"].get("default_branch") or "").strip()
    if pull is None and suite.get("head_branch") != default:
        return Nothing(f"{_shown(suite.get('head_branch'))} is neither the default branch nor a pull request's.")
    return CheckCommit(_source(payload), commit, line, pull, asked=_time(suite["updated_at"]), base=base)


def _pull_request(payload: Payload, _: str) -> Ask:
    action, pull = payload["action"], payload["pull_request"]
    number = int(payload["number"])
    source = _source(payload)
    if action == "closed":
        return Abandon(source, f"pull request {number}")
    if action not in ("opened", "reopened", "synchronize", "ready_for_review"):
        return _other("pull_request", action)
    head, base = pull["head"], pull["base"]
    if (head.get("repo") or {}).get("full_name") != base["repo"]["full_name"]:
        return Nothing(f"The head is a fork's: nothing of it runs before a maintainer comments {COMMAND} COMMIT.")
    line = f"pull request {number}"
    return CheckCommit(
        source, _commit(head["sha"]), line, number, asked=_time(pull["updated_at"]), base=_base(base)
    )  # fmt: skip


def _merge_group(payload: Payload, _: str) -> Ask:
    action, group = payload["action"], payload["merge_group"]
    # A queue makes a pull request's group anew on another base, under another name: the newer generation supersedes.
    line = f"merge group {_text(_GENERATION.sub('', group['head_ref'].removeprefix('refs/heads/')))}"
    commit = _commit(group["head_sha"])
    if action == "destroyed":
        return Abandon(_source(payload), line, commit)
    if action != "checks_requested":
        return _other("merge_group", action)
    made = (group.get("head_commit") or {}).get("timestamp")
    base = str(group.get("base_sha") or "")
    return CheckCommit(
        _source(payload), commit, line, None, asked=_time(made) if made else 0.0, base=_commit(base) if base else ""
    )  # fmt: skip


def _registry_package(payload: Payload, _: str) -> Ask:
    action = payload["action"]
    package = payload.get("registry_package") or payload["package"]
    if action not in ("published", "updated"):
        return _other("registry_package", action)
    version = package["package_version"]
    digest = str(version.get("version") or "")
    if str(package.get("package_type", "")).lower() != "container" or not _DIGEST.fullmatch(digest):
        return Nothing("The package is no container image with a digest.")
    commit = str(version.get("target_oid") or "")
    if not _COMMIT.fullmatch(commit):
        return Nothing("The image names no commit that it was built from.")
    # The event is about GitHub's own registry alone.
    name = f"ghcr.io/{package['namespace']}/{package['name']}".lower()
    line = f"image {_text(name)}"
    return CheckCommit(_source(payload), commit, line, None, "image", digest, image=_text(f"{name}@{digest}"))


def _issue_comment(payload: Payload, _: str) -> Ask:
    action, issue = payload["action"], payload["issue"]
    if action != "created":
        return _other("issue_comment", action)
    comment = payload["comment"]
    words = str(comment.get("body") or "").partition("\n")[0].split()
    if not words or words[0] != COMMAND:
        return Nothing(f"The comment does not begin with {COMMAND}.")
    if not issue.get("pull_request"):
        return Nothing("The comment belongs to no pull request.")
    commit = words[1].lower() if len(words) > 1 else ""
    if commit and not _PREFIX.fullmatch(commit):
        return Nothing(f"{COMMAND} takes a commit of at least twelve hexadecimal digits.")
    return CheckPull(_source(payload), int(issue["number"]), commit, f"comment {int(comment['id'])}")


def _ping(_: Payload, __: str) -> Ask:
    return Nothing("GitHub can reach the service.")


_READERS: Mapping[str, Callable[[Payload, str], Ask]] = {
    "check_run": _check_run,
    "check_suite": _check_suite,
    "pull_request": _pull_request,
    "merge_group": _merge_group,
    "registry_package": _registry_package,
    "package": _registry_package,
    "issue_comment": _issue_comment,
    "ping": _ping,
}


def _source(payload: Payload) -> Source:
    repository = payload["repository"]["full_name"]
    requester = payload["sender"]["login"]
    if not _REPOSITORY.fullmatch(repository) or not _LOGIN.fullmatch(requester):
        raise ValueError(f"repository {repository!r} or sender {requester!r}")
    installation = payload.get("installation")
    return Source(repository, int(installation["id"]) if installation else None, requester)


def _line(suite: Payload) -> tuple[str, int | None, str]:
    """What commits follow one another on; the pull request where there is exactly one that is no fork's; its base."""
    pulls = suite.get("pull_requests") or []
    if len(pulls) == 1:
        number = int(pulls[0]["number"])
        return f"pull request {number}", number, _base(pulls[0].get("base") or {})
    return f"branch {_text(suite.get('head_branch') or 'none')}", None, ""


def _base(base: Payload) -> str:
    """Commit of the base, empty where the event does not say it."""
    return _commit(base["sha"]) if base.get("sha") else ""


def _commit(text: Any) -> str:
    if not isinstance(text, str) or not _COMMIT.fullmatch(text):
        raise ValueError(f"commit {text!r}")
    return text


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _text(text: str) -> str:
    return text[:250]


def _other(event: str, action: object) -> Nothing:
    return Nothing(f"{event} with the action {_shown(action)} asks for nothing here.")


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
