"""What can go wrong between here and GitHub. None of it says anything about a verdict."""

from __future__ import annotations

from validator.errors import ValidatorError


class GitHubError(ValidatorError):
    """GitHub could not be asked, or said no."""


class RefusedError(GitHubError):
    """GitHub answered, and refuses; ``status`` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class LostAnswerError(GitHubError):
    """The request may have been carried out or not: look before it is made again."""


class ForgedResultError(ValidatorError):
    """A result is not what a check of ours leaves behind: too large, malformed, or with links."""
