"""What of the guide's set-up is missing in a repository."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from validator.github.errors import RefusedError
from validator.github.publish import AGGREGATE
from validator.github.repository import Repository

FINE, MISSING, UNKNOWN = "fine", "missing", "unknown"

OWNED = ("/golden/", "/pipelines/", "/containers/", "/.github/")
WORKFLOWS = ("check.yml", "publish.yml", "rebaseline.yml", "nightly.yml")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``advice`` is what to do where it is missing."""

    state: str
    name: str
    found: str
    advice: str = ""


def examine(repository: Repository) -> list[Finding]:
    """Everything that can be looked at with these credentials. Raises ``GitHubError`` where GitHub is away."""
    default = str(repository.transport.get(repository.path)["default_branch"])
    looks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("workflows", lambda: _workflows(repository)),
        ("CODEOWNERS", lambda: _owners(repository)),
        ("ruleset", lambda: _rules(repository, default)),
        ("environments", lambda: _environments(repository)),
        ("token", lambda: _token(repository)),
        ("fork approval", lambda: _forks(repository)),
        ("runner group", lambda: _runners(repository)),
    ]
    found = []
    for name, look in looks:
        try:
            found += list(look())
        except RefusedError as error:
            why = f"not to be seen with these credentials ({error.status})"
            found.append(Finding(UNKNOWN, name, why, "look at the settings by hand, or use an administrator's token"))
    return found


def _get(repository: Repository, path: str) -> Any:
    """``None`` where there is nothing."""
    try:
        return repository.transport.get(repository.path + path)
    except RefusedError as error:
        if error.status == 404:
            return None
        raise


def _workflows(repository: Repository) -> Iterator[Finding]:
    for name in WORKFLOWS:
        there = _get(repository, f"/contents/.github/workflows/{name}") is not None
        state = FINE if there else MISSING
        yield Finding(state, name, "there" if there else "not there", "" if there else "validator init writes it")


def _owners(repository: Repository) -> Iterator[Finding]:
    file = _get(repository, "/contents/.github/CODEOWNERS") or _get(repository, "/contents/CODEOWNERS")
    text = base64.b64decode(file["content"]).decode(errors="replace") if file else ""
    owned = {line.split()[0] for line in text.splitlines() if len(line.split()) > 1 and not line.startswith("#")}
    lacking = [place for place in OWNED if place not in owned and "*" not in owned]
    if lacking:
        yield Finding(MISSING, "CODEOWNERS", f"nobody owns {', '.join(lacking)}", "name owners in .github/CODEOWNERS")
    else:
        yield Finding(FINE, "CODEOWNERS", "goldens, policy, containers and workflows have owners")


def _rules(repository: Repository, branch: str) -> Iterator[Finding]:
    rules = {rule["type"]: rule.get("parameters") or {} for rule in _get(repository, f"/rules/branches/{branch}") or ()}
    checks = rules.get("required_status_checks", {}).get("required_status_checks", ())
    required = next((check for check in checks if check["context"] == AGGREGATE), None)
    if required is None:
        advice = "import .github/ruleset.json, or require that check in a ruleset of the default branch"
        yield Finding(MISSING, "required check", f"{branch} does not require {AGGREGATE!r}", advice)
    elif not required.get("integration_id"):
        advice = "name the App as the source of the check: else any workflow can write one of that name"
        yield Finding(MISSING, "required check", f"{AGGREGATE!r} is required from anyone", advice)
    else:
        yield Finding(FINE, "required check", f"{AGGREGATE!r} from App {required['integration_id']}")
    if rules.get("pull_request", {}).get("require_code_owner_review"):
        yield Finding(FINE, "owners' review", "required")
    else:
        yield Finding(MISSING, "owners' review", "not required", "require a review by code owners in the ruleset")


def _environments(repository: Repository) -> Iterator[Finding]:
    unreviewed = _get(repository, "/environments/launch-unreviewed")
    rules = {rule["type"] for rule in (unreviewed or {}).get("protection_rules", ())}
    if "required_reviewers" in rules:
        yield Finding(FINE, "launch-unreviewed", "waits for a reviewer")
    else:
        found = "waits for nobody" if unreviewed else "not there"
        yield Finding(MISSING, "launch-unreviewed", found, "make the environment, with required reviewers")
    there = _get(repository, "/environments/launch-reviewed") is not None
    advice = "" if there else "make the environment; it needs no protection"
    yield Finding(FINE if there else MISSING, "launch-reviewed", "there" if there else "not there", advice)
    publish = _get(repository, "/environments/publish")
    if publish and publish.get("deployment_branch_policy"):
        yield Finding(FINE, "publish", "restricted to chosen branches")
    else:
        found = "open to every branch" if publish else "not there"
        yield Finding(MISSING, "publish", found, "make the environment and restrict it to the default branch")


def _token(repository: Repository) -> Iterator[Finding]:
    answer = repository.transport.get(f"{repository.path}/actions/permissions/workflow")
    found = str(answer["default_workflow_permissions"])
    if found == "read":
        yield Finding(FINE, "workflow token", "reads by default")
    else:
        advice = "set it to read in Settings, Actions, General"
        yield Finding(MISSING, "workflow token", f"may {found} by default", advice)


def _forks(repository: Repository) -> Iterator[Finding]:
    path = f"{repository.path}/actions/permissions/fork-pr-contributor-approval"
    found = str(repository.transport.get(path)["approval_policy"])
    if found == "all_external_contributors":
        yield Finding(FINE, "fork approval", "all outside collaborators wait for approval")
    else:
        advice = "require approval for all external contributors in Settings, Actions, General"
        yield Finding(MISSING, "fork approval", f"policy is {found}", advice)


def _runners(repository: Repository) -> Iterator[Finding]:
    owner = repository.name.partition("/")[0]
    groups = repository.transport.get(f"/orgs/{owner}/actions/runner-groups")["runner_groups"]
    restricted = [group["name"] for group in groups if group.get("restricted_to_workflows")]
    if restricted:
        yield Finding(FINE, "runner group", f"restricted to workflows: {', '.join(map(str, restricted))}")
    else:
        advice = "restrict the GPU runners' group to this repository and to check, rebaseline and nightly at one commit"
        yield Finding(MISSING, "runner group", "none is restricted to chosen workflows", advice)
