"""A project whose repository is at the double of GitHub, and what a launch job leaves behind for publishing."""

from __future__ import annotations

import json
import shutil
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.github.double.server import Double
from tests.project import Project, Ran
from tests.report import samples
from tests.repository import Repo
from validator.report.json import render_json
from validator.report.model import Report

NAME = "team/train"


@dataclass
class Hub:
    """The project (a clone), its bare repository at GitHub, and the double."""

    project: Project
    repo: Repo
    double: Double
    run: int = 100

    @property
    def results(self) -> Path:
        return self.project.folder.parent / "results"

    def push(self, branch: str) -> str:
        """Push the work tree's commit to a branch at GitHub."""
        self.repo.git("push", "-q", "-f", "origin", f"HEAD:refs/heads/{branch}")
        return self.repo.git("rev-parse", "HEAD")

    def pull(self, branch: str = "change", fork: str | None = None) -> dict[str, Any]:
        """Push the work tree's commit and open a pull request to main."""
        if fork:
            self.repo.git("push", "-q", "-f", "origin", "HEAD:refs/pull/0/head")
            commit = self.repo.git("rev-parse", "HEAD")
        else:
            commit = self.push(branch)
        return self.double.state.add_pull(branch, commit, "main", fork)

    def event(self, action: str = "completed", conclusion: str = "success", **values: Any) -> Path:
        """A workflow_run event about the work tree's commit."""
        run = {
            "id": self.run, "run_attempt": 1, "head_sha": self.repo.git("rev-parse", "HEAD"), "head_branch": "change",
            "head_repository": {"owner": {"login": "team"}}, "event": "pull_request",
            "conclusion": conclusion if action == "completed" else None,
            "html_url": f"https://github.example/{NAME}/actions/runs/{self.run}",
        } | values  # fmt: skip
        file = self.project.folder.parent / "event.json"
        file.write_text(json.dumps({"action": action, "workflow_run": run}))
        return file

    def check(self, *words: str) -> Ran:
        """Check the work tree against main; the folder that is left behind is ``results/tiny``."""
        shutil.rmtree(self.results, ignore_errors=True)
        self.results.mkdir()
        out = self.project.folder.parent / "out"
        shutil.rmtree(out, ignore_errors=True)
        ran = self.project.check("--base", "main", "--out", str(out), *words)
        packed = self.project.run("github", "pack", str(out), str(self.results / "tiny"))
        assert packed.code == 0, packed.err
        return ran

    def report(self, made: Report | str, **values: Any) -> Path:
        """A result that is a report alone, as a claim."""
        report = samples.SAMPLES[made]() if isinstance(made, str) else made
        folder = self.results / "tiny"
        folder.mkdir(parents=True, exist_ok=True)
        values = {"pipeline": "tiny", "stamps": ()} | values
        (folder / "report.json").write_text(render_json(replace(report, **values)))
        return folder

    def upload(self, folder: Path, name: str = "validator-result-tiny") -> Path:
        """The folder as an artifact of the run."""
        archive = self.results / f"{name}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    opened.write(path, path.relative_to(folder))
        self.attach(archive.read_bytes(), name)
        return archive

    def attach(self, content: bytes, name: str = "validator-result-tiny") -> None:
        number = self.double.state.number()
        self.double.state.artifacts[number] = content
        self.double.state.artifact_names[number] = name

    def publish(self, *words: str, event: Path | None = None) -> Ran:
        """``validator github publish`` as the workflow calls it."""
        ran = self.project.run("github", "publish", "--event", str(event or self.event()), *words)
        assert self.double.bad == []
        return ran

    def runs(self) -> dict[str, dict[str, Any]]:
        """The newest check run of each name on the work tree's commit."""
        found = self.double.state.runs_of(self.repo.git("rev-parse", "HEAD"), None)
        return {run["name"]: run for run in reversed(found)}

    @property
    def comments(self) -> list[str]:
        return [comment["body"] for comment in self.double.state.comments]
