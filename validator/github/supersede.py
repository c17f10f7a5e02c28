"""What a merge queue makes anew: the run of an older generation is cancelled. Each generation has a branch of its own,
so no workflow's concurrency group holds two of them.
"""

from __future__ import annotations

import re
from itertools import islice

from validator.github.errors import RefusedError
from validator.github.event import MERGE_GROUP, Change
from validator.github.repository import Repository

_BRANCH = re.compile(r"(gh-readonly-queue/.+/pr-\d+)-[0-9a-f]{40}(?:[0-9a-f]{24})?")

#: A queue has no more at once; the newest are looked at.
_MOST_RUNS = 200

#: The run has ended meanwhile.
_CONFLICT = 409


def cancel_older(repository: Repository, change: Change) -> list[str]:
    """Cancel runs of the same workflow for older generations of the same queue entry; returns a line for each.

    Raises ``GitHubError`` where GitHub is away. Without the right to cancel nothing is lost but a runner's time: the
    older launch finds its branch gone. Cancelling twice changes nothing.
    """
    entry = entry_of(change.branch)
    if change.event != MERGE_GROUP or not entry or not change.workflow:
        return []
    lines = []
    for run in islice(repository.runs(change.workflow, MERGE_GROUP), _MOST_RUNS):
        branch = str(run.get("head_branch") or "")
        is_older = int(run["id"]) < change.run and branch != change.branch
        if not is_older or run["status"] == "completed" or entry_of(branch) != entry:
            continue
        try:
            repository.cancel_run(int(run["id"]))
        except RefusedError as error:
            if error.status != _CONFLICT:
                lines.append(f"not cancelled: run {int(run['id'])}. {error}")
            continue
        lines.append(f"cancelled: run {int(run['id'])} of the older generation {branch.rpartition('-')[2][:12]}")
    return lines


def entry_of(branch: str) -> str:
    """What the generations of one queue entry share; empty for another branch."""
    found = _BRANCH.fullmatch(branch)
    return found[1] if found else ""
