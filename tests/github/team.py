"""A team's repository at the double of GitHub, and the workflows that run about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.github.double.server import APP
from tests.github.hub import NAME, Hub
from tests.github.runner import Actions
from tests.repository import Repo

ROOT = Path(__file__).parents[2]
PRODUCT = "tools/validator"
TINY = "validator / tiny"


@dataclass
class Team:
    """A team's repository with workflows."""

    hub: Hub
    product: str
    key: str
    runs: list[Actions] = field(default_factory=list)
    approve: Callable[[str], bool] = lambda environment: True
    secrets: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def repo(self) -> Repo:
        return self.hub.repo

    def change(self, message: str, **files: str) -> str:
        for path, text in files.items():
            self.repo.write(path, text)
        return self.repo.commit(message)

    def pins(self, version: str) -> str:
        """Commit a bump of the pinned version."""
        return self.change(f"torch {version}", **{"constraints.txt": f"torch=={version}\n"})

    def run(self, workflow: str, event_name: str, event: dict[str, Any], **inputs: Any) -> Actions:
        folder = self.hub.project.folder.parent / f"run-{len(self.runs)}"
        folder.mkdir()
        event["repository"] = {"default_branch": "main"}
        main = self.repo.git("rev-parse", "main")
        github = {
            "event": event, "event_name": event_name, "repository": NAME, "run_id": len(self.runs) + 1, "token": "read",
            "actor": "Ann", "server_url": "https://github.example", "ref": "refs/heads/main", "ref_name": "main",
            "sha": main,
        }  # fmt: skip
        actions = Actions(
            ROOT / ".github" / "workflows" / f"{workflow}.yml", self.hub.project.folder.parent / "github", folder,
            github, {"product": PRODUCT, "product-commit": self.product, **inputs},
            {"VALIDATOR_APP_KEY": self.key, **self.secrets}, {"VALIDATOR_APP_ID": str(APP), **self.variables},
            self.approve,
        )  # fmt: skip
        self.runs.append(actions)
        return actions

    def check(self, pull: dict[str, Any]) -> tuple[str, Actions]:
        """check.yml for the pull request as it is now."""
        pull = self.hub.double.state.pull(pull["number"])
        actions = self.run("check", "pull_request", {"pull_request": pull})
        return actions.run(), actions

    def queue(self, pull: dict[str, Any], head: str) -> tuple[str, Actions]:
        """check.yml for a merge group that holds main and the pull request: the commit ``head``."""
        base = self.repo.git("rev-parse", "main")
        ref = f"refs/heads/gh-readonly-queue/main/pr-{pull['number']}-{base}"
        self.repo.git("push", "-q", "-f", "origin", f"{head}:{ref}")
        group = {"base_sha": base, "base_ref": "refs/heads/main", "head_sha": head, "head_ref": ref}
        actions = self.run("check", "merge_group", {"action": "checks_requested", "merge_group": group})
        return actions.run(), actions

    def rebaseline(self, pull: dict[str, Any], reason: str) -> Actions:
        """rebaseline.yml for the pull request, which is proposed and committed."""
        inputs = {"pull-request": pull["number"], "pipelines": "called", "reason": reason, "accept-drift": True}
        actions = self.run("rebaseline", "workflow_dispatch", {}, **inputs)
        assert actions.run() == "success", actions.log()
        self.repo.git("fetch", "-q", "origin")
        return actions

    def publish(self, pull: dict[str, Any], checked: Actions, conclusion: str) -> dict[str, dict[str, Any]]:
        """publish.yml for that run of a pull request; returns the newest check runs on the head."""
        head = pull["head"]
        owner = head["repo"]["full_name"].partition("/")[0]
        about = {
            "event": "pull_request", "head_sha": head["sha"], "head_branch": head["ref"],
            "head_repository": {"owner": {"login": owner}},
        }  # fmt: skip
        return self.published(checked, {**about, "conclusion": conclusion})

    def published(self, checked: Actions, about: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """publish.yml for a run of check that GitHub describes so; returns the newest check runs on its commit."""
        state = self.hub.double.state
        state.artifacts.clear()
        state.artifact_names.clear()
        for folder in sorted(checked.artifacts.glob("validator-result-*")):
            self.hub.upload(folder, folder.name)
        url = f"https://github.example/{NAME}/actions/runs/1"
        run = {"id": len(self.runs), "run_attempt": 1, "html_url": url, "name": "check", **about}
        actions = self.run("publish", "workflow_run", {"action": "completed", "workflow_run": run})
        assert actions.run() == "success", actions.log()
        assert self.hub.double.bad == []
        found = reversed(state.runs_of(about["head_sha"], None))
        return {each["name"]: each for each in found}
