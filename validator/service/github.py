"""What the service needs of GitHub. ``github_api`` gives it; the tests' double stands behind that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from validator.errors import ValidatorError


class GitHubError(ValidatorError):
    """GitHub refused; to ask again is of no use."""


class GitHubAwayError(GitHubError):
    """GitHub could not be asked, or asks for patience. ``seconds`` is how long."""

    def __init__(self, sentence: str, seconds: float = 0.0) -> None:
        super().__init__(sentence)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Place:
    """A repository, and the App's installation on it (``None``: not known; asked for)."""

    repository: str
    installation: int | None = None


@dataclass(frozen=True, slots=True)
class WorkflowRun:
    """A run of a workflow. ``conclusion`` is empty until it has ended."""

    id: int
    status: str
    conclusion: str
    url: str


@dataclass(frozen=True, slots=True)
class Pull:
    """A pull request as it is now."""

    number: int
    commit: str
    is_fork: bool
    is_open: bool
    base: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryRow:
    """One delivery of the App's list."""

    id: int
    guid: str
    event: str
    delivered: float


class GitHub(Protocol):
    """All that is asked of GitHub. Calls raise ``GitHubError``, and ``GitHubAwayError`` where they may be repeated."""

    def find_check_run(self, place: Place, commit: str, external_id: str) -> int | None:
        """The check run that was made with this external ID."""

    def create_check_run(self, place: Place, content: Mapping[str, Any]) -> int:
        """Make one and give its ID."""

    def update_check_run(self, place: Place, check_run: int, content: Mapping[str, Any]) -> None:
        """Change one."""

    def default_branch(self, place: Place) -> str:
        """Name of the default branch."""

    def file(self, place: Place, path: str, ref: str) -> str | None:
        """A file's text, ``None`` where it is not there."""

    def is_member(self, place: Place, organization: str, team: str, login: str) -> bool:
        """Whether a person is an active member of a team."""

    def permission(self, place: Place, login: str) -> str:
        """``admin``, ``write``, ``read`` or ``none``."""

    def pull(self, place: Place, number: int) -> Pull:
        """A pull request."""

    def dispatch(self, place: Place, workflow: str, ref: str, inputs: Mapping[str, str]) -> None:
        """Start a workflow."""

    def find_run(self, place: Place, workflow: str, key: str, since: float) -> WorkflowRun | None:
        """The run whose name holds ``key``, started not before ``since``."""

    def run(self, place: Place, run: int) -> WorkflowRun:
        """A run as it is now."""

    def cancel_run(self, place: Place, run: int) -> None:
        """Ask for its end; one that has ended is no error."""

    def failed_deliveries(self, since: float) -> Sequence[DeliveryRow]:
        """Deliveries to this App since a time that no delivery of the same GUID acknowledged, oldest first."""

    def delivery(self, number: int) -> Mapping[str, Any]:
        """The payload of one delivery."""
