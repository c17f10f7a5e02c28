"""GitHub Actions: a workflow is dispatched, found again by the key in its name, followed and cancelled."""

from __future__ import annotations

from typing import final

from validator.service.engines.model import EngineError, Look, Order, Standing
from validator.service.github import GitHub, GitHubAwayError, GitHubError, Place


@final
class ActionsEngine:
    """Dispatches ``workflow`` on ``ref`` (empty: the default branch). Its runs are named after the attempt."""

    name = "actions"
    grace = 900.0  # publishing is a workflow of its own, which may have to wait for a runner
    delay = 30.0  # a dispatched run shows in the list after some seconds
    tokens = False  # launches of unreviewed code get no secret: the publishing workflow has its own token

    def __init__(self, github: GitHub, workflow: str, ref: str) -> None:
        self._github = github
        self._workflow = workflow
        self._ref = ref

    def has_room(self) -> bool:
        return True

    def find(self, order: Order, since: float) -> str | None:
        try:
            run = self._github.find_run(_place(order), self._workflow, order.attempt, since)
        except GitHubError as error:
            raise _failed(error) from error
        return None if run is None else str(run.id)

    def hand_over(self, order: Order) -> str:
        inputs = {"key": order.attempt, "pipeline": order.pipeline, "commit": order.commit, "image": order.image}
        try:
            ref = self._ref or self._github.default_branch(_place(order))
        except GitHubError as error:
            raise _failed(error) from error
        try:
            self._github.dispatch(_place(order), self._workflow, ref, inputs)
        except GitHubAwayError as error:
            raise EngineError(str(error), unsure=True) from error
        except GitHubError as error:
            raise _failed(error) from error
        return ""

    def look(self, order: Order, external: str) -> Look:
        try:
            run = self._github.run(_place(order), int(external))
        except GitHubAwayError as error:
            raise _failed(error) from error
        except GitHubError as error:
            return Look(Standing.LOST, str(error))
        if run.status == "completed":
            return Look(
                Standing.ENDED, f"The workflow run ended with {run.conclusion or 'nothing'} and no result came."
            )
        if run.status == "in_progress":
            return Look(Standing.RUNNING, f"The workflow runs: {run.url}")
        return Look(Standing.QUEUED, f"The workflow is {run.status.replace('_', ' ')}: {run.url}")

    def cancel(self, order: Order, external: str) -> None:
        try:
            self._github.cancel_run(_place(order), int(external))
        except GitHubAwayError as error:
            raise _failed(error) from error
        except GitHubError:
            return  # it has ended, or is gone


def _place(order: Order) -> Place:
    return Place(order.repository, order.installation)


def _failed(error: GitHubError) -> EngineError:
    return EngineError(str(error), final=not isinstance(error, GitHubAwayError))
