"""Runs a workflow file as GitHub Actions would, on this machine: jobs, needs, conditions, matrices, steps, artifacts.

``run:`` steps are executed for real, with the shell that GitHub takes. The few actions that the workflows use are
played: checkout with a real git clone, artifacts with folders.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.github.expressions import evaluate, filled, truth


@dataclass
class Job:
    """What became of one job (of one entry of its matrix)."""

    name: str
    result: str = "success"
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""


@dataclass
class Actions:
    """GitHub Actions for one workflow run.

    ``server`` is a folder of bare repositories, ``approve`` says whether a job may enter an environment (a job that may
    not waits, and so do those that need it).
    """

    workflow: Path
    server: Path
    folder: Path
    github: Mapping[str, Any]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    approve: Callable[[str], bool] = lambda environment: True
    jobs: dict[str, list[Job]] = field(default_factory=dict)
    executed: list[str] = field(default_factory=list)

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    def run(self) -> str:
        """Run all jobs; returns success, failure or waiting."""
        self.artifacts.mkdir(parents=True, exist_ok=True)
        document = yaml.safe_load(self.workflow.read_text())
        waiting: set[str] = set()
        for name, job in document["jobs"].items():
            needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
            if waiting & set(needs):
                waiting.add(name)
                continue
            context = self._context(document, needs)
            condition = job.get("if")
            wanted = all(context["needs"][each]["result"] == "success" for each in needs) if condition is None else True
            if condition is not None:
                asks = re.search(r"always\(\)|failure\(\)|cancelled\(\)", condition)
                sound = all(context["needs"][each]["result"] == "success" for each in needs)
                wanted = truth(evaluate(condition, context)) and (bool(asks) or sound)
            if not wanted:
                self.jobs[name] = [Job(name, "skipped")]
                continue
            environment = filled(job.get("environment", ""), context)
            if environment and not self.approve(environment):
                waiting.add(name)
                continue
            self.jobs[name] = [self._job(document, name, job, each) for each in self._matrix(job, context)]
        if waiting:
            return "waiting"
        results = {self.result(name) for name in self.jobs}
        return "failure" if "failure" in results else "success"

    @property
    def name(self) -> str:
        """The run's name, as GitHub shows it and tells it to other workflows."""
        document = yaml.safe_load(self.workflow.read_text())
        return str(filled(document.get("run-name", ""), self._context(document, []))) or str(document["name"])

    def result(self, name: str) -> str:
        results = {job.result for job in self.jobs[name]}
        return "failure" if "failure" in results else results.pop()

    def log(self) -> str:
        return "\n".join(f"== {job.name}: {job.result}\n{job.log}" for jobs in self.jobs.values() for job in jobs)

    def _context(self, document: Mapping[str, Any], needs: list[str], **more: Any) -> dict[str, Any]:
        needed = {name: {"result": self.result(name), "outputs": self.jobs[name][0].outputs} for name in needs}
        context = {
            "github": self.github, "inputs": self.inputs, "secrets": self.secrets, "vars": self.variables,
            "needs": needed, "env": {}, "matrix": {}, "steps": {}, "runner": {}, **more,
        }  # fmt: skip
        context["env"] = {key: filled(value, context) for key, value in document.get("env", {}).items()}
        return context

    def _matrix(self, job: Mapping[str, Any], context: dict[str, Any]) -> list[dict[str, Any]]:
        if "strategy" not in job:
            return [context]
        matrix = filled(job["strategy"]["matrix"], context)
        return [{**context, "matrix": entry} for entry in matrix["include"]]

    def _job(self, document: Mapping[str, Any], name: str, job: Mapping[str, Any], context: dict[str, Any]) -> Job:
        made = Job(filled(job.get("name", name), context))
        workspace = self.folder / f"job-{len(list(self.folder.iterdir()))}"
        temporary = workspace.with_name(workspace.name + "-temp")
        workspace.mkdir()
        temporary.mkdir()
        context = {**context, "runner": {"temp": str(temporary)}, "steps": {}}
        shell = document.get("defaults", {}).get("run", {}).get("shell")
        for number, step in enumerate(job["steps"]):
            condition = str(step.get("if", "success()"))
            context["job"] = {"failed": made.result == "failure"}
            if not truth(evaluate(condition if "()" in condition else f"success() && ({condition})", context)):
                continue
            env = {key: str(filled(value, context)) for key, value in step.get("env", {}).items()}
            try:
                if "uses" in step:
                    given = {key: filled(value, context) for key, value in step.get("with", {}).items()}
                    self._action(step["uses"], given, workspace)
                    continue
                outputs = temporary / f"outputs-{number}"
                outputs.touch()
                where = workspace / step.get("working-directory", ".")
                variables = self._variables(context, workspace, temporary, outputs) | env
                done = _shell(step["run"], step.get("shell", shell), where, variables)
                made.log += f"-- {step.get('name', step['run'][:40])}\n{done.stdout}"
                self.executed.append(step.get("name", ""))
                pairs = [
                    (key, value) for key, _, value in (line.partition("=") for line in outputs.read_text().splitlines())
                ]
                context["steps"][step.get("id", str(number))] = {"outputs": dict(pairs)}
                if done.returncode:
                    made.result = "failure"
            except _MissingError as error:
                made.log += f"-- {error}\n"
                made.result = "failure"
        made.outputs = {key: str(filled(value, context)) for key, value in job.get("outputs", {}).items()}
        return made

    def _variables(self, context: dict[str, Any], workspace: Path, temporary: Path, outputs: Path) -> dict[str, str]:
        event = temporary / "event.json"
        event.write_text(json.dumps(self.github["event"]))
        own = {
            "GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_SERVER_URL": f"file://{self.server}", "GITHUB_REPOSITORY": self.github["repository"],
            "GITHUB_EVENT_PATH": str(event), "GITHUB_WORKSPACE": str(workspace), "RUNNER_TEMP": str(temporary),
            "HOME": str(temporary),
        }  # fmt: skip
        return own | {key: str(value) for key, value in context["env"].items()}

    def _action(self, uses: str, given: Mapping[str, Any], workspace: Path) -> None:
        action = uses.partition("@")[0]
        if action == "actions/checkout":
            assert given["persist-credentials"] is False, uses
            repository = self.server / (given.get("repository") or self.github["repository"])
            target = workspace / given.get("path", ".")
            _git("clone", "-q", "--no-checkout", f"file://{repository}", str(target))
            ref = given.get("ref") or self.github["sha"]
            _git("-C", str(target), "fetch", "-q", "origin", ref)
            _git("-C", str(target), "checkout", "-q", "--detach", "FETCH_HEAD")
        elif action == "actions/upload-artifact":
            source = workspace / given["path"]
            if source.is_dir():
                shutil.copytree(source, self.artifacts / given["name"])
            elif given.get("if-no-files-found") == "error":
                raise _MissingError(f"nothing to upload as {given['name']}")
        elif action == "actions/download-artifact":
            target = workspace / given.get("path", ".")
            if "pattern" in given:
                for source in self.artifacts.glob(given["pattern"]):
                    shutil.copytree(source, target / source.name)
            else:
                shutil.copytree(self.artifacts / given["name"], target)
        else:
            assert action == "actions/setup-python", uses


class _MissingError(Exception):
    pass


def _shell(
    script: str, shell: str | None, where: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    options = ["--noprofile", "--norc", "-eo", "pipefail"] if shell == "bash" else ["-e"]
    kept = {name: os.environ[name] for name in ("PATH", "PIP_FIND_LINKS", "PIP_NO_INDEX", "LANG") if name in os.environ}
    extra = {name: value for name, value in os.environ.items() if name.startswith(("EMULATED_", "GITHUB_API"))}
    environment = {**kept, **extra, **variables, "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(
        ["bash", *options, "-c", script], cwd=where, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=500,
    )  # fmt: skip


def _git(*words: str) -> None:
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stderr)
