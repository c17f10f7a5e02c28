"""What GitHub says happened: commit, pull request and run, from the event and the API, never from a result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validator.errors import UsageError
from validator.github.repository import Repository

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_KEY = re.compile(r".* for ([0-9a-z]{20}-[1-9][0-9]{0,3})")
_QUEUE = re.compile(r"gh-readonly-queue/.+-([0-9a-f]{40}([0-9a-f]{24})?)")

MERGE_GROUP = "merge_group"

#: State of a check run that goes with the action of a workflow_run event.
STATES = {"requested": "queued", "in_progress": "in_progress", "completed": "completed"}


@dataclass(frozen=True, slots=True)
class Change:
    """One commit to publish about.

    ``base`` is the commit that policy and goldens come from, ``pull`` the open pull request whose head it is now
    (``None``: there is none, or it has moved on). ``run`` and ``attempt`` name the run of the workflow (0: none).
    ``event`` is what started it, on ``branch``. ``key`` is that of the service's job which it was dispatched for.
    """

    head: str
    base: str
    pull: int | None
    run: int
    attempt: int
    state: str
    conclusion: str
    url: str
    event: str = ""
    branch: str = ""
    workflow: int = 0
    key: str = ""


def read_event(file: Path) -> Mapping[str, Any]:
    """The payload of an event. Raises ``UsageError``."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} is no readable event ({type(error).__name__}); change --event.") from error
    if not isinstance(content, dict):
        raise UsageError(f"{file} is no event; change --event.")
    return content


def change_of(event: Mapping[str, Any], repository: Repository, default: str) -> Change:
    """The change that a ``workflow_run`` event is about; ``default`` is the base where the event has none.

    Raises ``UsageError`` for another event.
    """
    run = event.get("workflow_run")
    if not isinstance(run, dict) or not _COMMIT.fullmatch(str(run.get("head_sha", ""))):
        raise UsageError("The event is no workflow_run with a commit; give --head and --base instead.")
    head = str(run["head_sha"])
    pull, base = _pull(run, repository, head)
    branch = str(run.get("head_branch") or "")
    queue = _QUEUE.fullmatch(branch)
    if queue is not None and run.get("event") == MERGE_GROUP:
        base = queue[1]
    return Change(
        head=head,
        base=base or default,
        pull=pull,
        run=int(run.get("id") or 0),
        attempt=int(run.get("run_attempt") or 1),
        state=STATES.get(str(event.get("action")), "completed"),
        conclusion=str(run.get("conclusion") or ""),
        url=str(run.get("html_url") or ""),
        event=str(run.get("event") or ""),
        branch=branch,
        workflow=int(run.get("workflow_id") or 0),
        key=_key(run, str((event.get("repository") or {}).get("default_branch") or "")),
    )


def _key(run: Mapping[str, Any], default_branch: str) -> str:
    """The key in the name of a run that the default branch's workflow gave it: dispatching takes the right to write,
    and another branch's workflow could name its run as it likes.
    """
    if run.get("event") != "workflow_dispatch" or not default_branch or run.get("head_branch") != default_branch:
        return ""
    found = _KEY.fullmatch(str(run.get("display_title") or ""))
    return found[1] if found else ""


def _pull(run: Mapping[str, Any], repository: Repository, head: str) -> tuple[int | None, str]:
    """Number and base commit of the open pull request whose head the commit is; a fork's comes with no number."""
    if run.get("event") != "pull_request":
        return None, ""
    owner = ((run.get("head_repository") or {}).get("owner") or {}).get("login")
    for pull in repository.pulls_from(f"{owner}:{run.get('head_branch')}"):
        if pull["head"]["sha"] == head:
            return int(pull["number"]), str(pull["base"]["sha"])
    return None, ""
