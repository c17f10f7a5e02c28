"""Cuts GitHub's published OpenAPI description down to the operations that this project uses.

    npm install --prefix tests/github/openapi --no-package-lock --ignore-scripts
    python tests/github/openapi/reduce.py

``api.json`` beside this file is what comes out; the tests' double of GitHub judges every request by it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SOURCE = FOLDER / "node_modules" / "@octokit" / "openapi" / "generated" / "api.github.com.json"
TARGET = FOLDER / "api.json"

_REPOSITORY = "/repos/{owner}/{repo}"
OPERATIONS = {
    f"{_REPOSITORY}": ("get",),
    f"{_REPOSITORY}/installation": ("get",),
    "/app/installations/{installation_id}/access_tokens": ("post",),
    f"{_REPOSITORY}/check-runs": ("post",),
    f"{_REPOSITORY}/check-runs/{{check_run_id}}": ("get", "patch"),
    f"{_REPOSITORY}/check-runs/{{check_run_id}}/annotations": ("get",),
    f"{_REPOSITORY}/commits/{{ref}}/check-runs": ("get",),
    f"{_REPOSITORY}/pulls": ("get", "post"),
    f"{_REPOSITORY}/pulls/{{pull_number}}": ("get",),
    f"{_REPOSITORY}/issues/{{issue_number}}/comments": ("get", "post"),
    f"{_REPOSITORY}/issues/comments/{{comment_id}}": ("patch",),
    f"{_REPOSITORY}/actions/runs/{{run_id}}/artifacts": ("get",),
    f"{_REPOSITORY}/actions/artifacts/{{artifact_id}}/{{archive_format}}": ("get",),
    f"{_REPOSITORY}/git/blobs": ("post",),
    f"{_REPOSITORY}/git/trees": ("post",),
    f"{_REPOSITORY}/git/commits": ("post",),
    f"{_REPOSITORY}/git/commits/{{commit_sha}}": ("get",),
    f"{_REPOSITORY}/git/ref/{{ref}}": ("get",),
    f"{_REPOSITORY}/git/refs": ("post",),
    f"{_REPOSITORY}/git/refs/{{ref}}": ("patch",),
    f"{_REPOSITORY}/contents/{{path}}": ("get",),
    f"{_REPOSITORY}/rules/branches/{{branch}}": ("get",),
    f"{_REPOSITORY}/environments/{{environment_name}}": ("get",),
    f"{_REPOSITORY}/actions/permissions": ("get",),
    f"{_REPOSITORY}/actions/permissions/workflow": ("get",),
    f"{_REPOSITORY}/actions/permissions/fork-pr-contributor-approval": ("get",),
    "/orgs/{org}/actions/runner-groups": ("get",),
    "/app/hook/deliveries": ("get",),
    "/app/hook/deliveries/{delivery_id}": ("get",),
    "/orgs/{org}/teams/{team_slug}/memberships/{username}": ("get",),
    f"{_REPOSITORY}/collaborators/{{username}}/permission": ("get",),
    f"{_REPOSITORY}/actions/workflows/{{workflow_id}}/dispatches": ("post",),
    f"{_REPOSITORY}/actions/workflows/{{workflow_id}}/runs": ("get",),
    f"{_REPOSITORY}/actions/runs/{{run_id}}": ("get",),
    f"{_REPOSITORY}/actions/runs/{{run_id}}/cancel": ("post",),
}

#: Keys that say nothing about what is valid.
_WORDS = {"description", "examples", "summary", "externalDocs", "x-github", "tags", "operationId", "deprecated"}


def reduced(whole: dict[str, Any]) -> dict[str, Any]:
    """The chosen operations, with parameters, request bodies, successful answers and the schemas that they need."""
    paths = {path: _path(whole["paths"][path], methods) for path, methods in OPERATIONS.items()}
    components: dict[str, dict[str, Any]] = {}
    waiting = list(_references(paths))
    while waiting:
        kind, name = waiting.pop()
        if name not in components.setdefault(kind, {}):
            components[kind][name] = _bare(whole["components"][kind][name])
            waiting += _references(components[kind][name])
    ordered = {kind: dict(sorted(named.items())) for kind, named in sorted(components.items())}
    head = {key: whole[key] for key in ("openapi", "servers")}
    version = {"title": whole["info"]["title"], "version": whole["info"]["version"]}
    return {**head, "info": version, "paths": paths, "components": ordered}


def _path(item: dict[str, Any], methods: tuple[str, ...]) -> dict[str, Any]:
    kept = {"parameters": _bare(item["parameters"])} if "parameters" in item else {}
    for method in methods:
        operation = item[method]
        answers = {status: answer for status, answer in operation["responses"].items() if status[0] in "23"}
        kept[method] = {key: _bare(operation[key]) for key in ("parameters", "requestBody") if key in operation} | {
            "responses": _bare(answers)
        }
    return kept


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        # Below "properties" the keys are names, whatever they are called.
        return {
            key: {name: _bare(each) for name, each in item.items()} if key == "properties" else _bare(item)
            for key, item in value.items()
            if key not in _WORDS
        }
    return [_bare(item) for item in value] if isinstance(value, list) else value


def _references(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        own = [tuple(value["$ref"].split("/")[2:4])] if isinstance(value.get("$ref"), str) else []
        return own + [each for item in value.values() for each in _references(item)]  # type: ignore[operator]
    return [each for item in value for each in _references(item)] if isinstance(value, list) else []


def rendered(whole: dict[str, Any]) -> str:
    return json.dumps(reduced(whole), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    TARGET.write_text(rendered(json.loads(SOURCE.read_text(encoding="utf-8"))), encoding="utf-8")
