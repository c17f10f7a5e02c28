"""Check runs that are made once and brought up to date, whatever gets lost on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from validator.github.annotations import BATCH, Annotation
from validator.github.errors import GitHubError, LostAnswerError
from validator.github.repository import Repository
from validator.github.transport import ATTEMPTS


@final
@dataclass(frozen=True, slots=True)
class CheckRun:
    """What one check run is to say. ``identity`` tells it from those of other runs; ``conclusion`` only with
    ``completed``.
    """

    name: str
    commit: str
    identity: str
    state: str
    title: str
    summary: str
    conclusion: str = ""
    annotations: Sequence[Annotation] = ()
    url: str = ""

    def publish(self, repository: Repository) -> int:
        """Bring GitHub to say this; returns the check run's number. Nothing is sent where it says so already.

        A completed one is never set back: events come in any order.
        """
        found = repository.transport.once(lambda: self._find(repository), lambda: self._create(repository))
        number = int(found["id"])
        for _ in range(ATTEMPTS * (2 + len(self.annotations) // BATCH)):
            if found["status"] == "completed" and self.state != "completed":
                return number
            there = int(found["output"].get("annotations_count") or 0)
            if self._says(found) and there >= len(self.annotations):
                return number
            try:
                found = repository.update_check_run(number, self._body(self.annotations[there : there + BATCH]))
            except LostAnswerError:
                found = repository.check_run(number)
        raise GitHubError(f"GitHub does not keep the check run {self.name}; try again later.")

    def _find(self, repository: Repository) -> Any:
        runs = repository.check_runs(self.commit, self.name)
        return next((run for run in runs if run.get("external_id") == self.identity), None)

    def _create(self, repository: Repository) -> Any:
        body = {**self._body(self.annotations[:BATCH]), "head_sha": self.commit, "external_id": self.identity}
        return repository.create_check_run(body)

    def _says(self, found: Mapping[str, Any]) -> bool:
        output = found["output"]
        return (
            found["status"] == self.state
            and (found.get("conclusion") or "") == self.conclusion
            and output.get("title") == self.title
            and (output.get("summary") or "").strip() == self.summary.strip()
        )

    def _body(self, annotations: Sequence[Annotation]) -> dict[str, object]:
        output: dict[str, object] = {"title": self.title, "summary": self.summary}
        if annotations:
            output["annotations"] = list(annotations)
        body: dict[str, object] = {"name": self.name, "status": self.state, "output": output}
        if self.state == "completed":
            body["conclusion"] = self.conclusion
        if self.url:
            body["details_url"] = self.url
        return body
