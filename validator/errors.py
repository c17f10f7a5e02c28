"""The few errors that a person meets, each with one sentence that says what to change."""

from __future__ import annotations


class ValidatorError(Exception):
    """Base of all errors whose message is written for the person who runs the command."""

    exit_code = 3


class UsageError(ValidatorError):
    """The request cannot be carried out as written: an option, a file or a value has to change."""

    exit_code = 2


class LaunchError(ValidatorError):
    """A launch did not come to its end (crash, time limit, missing package): machinery, never a mismatch."""


class TrajectoryError(ValidatorError):
    """A trajectory on disk is not what it claims to be: truncated, edited, foreign, or of another version."""
