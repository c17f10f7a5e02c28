"""What an event asks for, in the service's own words. Plain values; no database, no GitHub."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """Where an event comes from: ``installation`` is the App's on that repository, ``requester`` a login."""

    repository: str
    installation: int | None
    requester: str


@dataclass(frozen=True, slots=True)
class CheckCommit:
    """Check a commit with every pipeline that is called for: by what changed since ``base``, or by the new ``image``;
    all pipelines where there is neither.

    ``asked`` is the event's own time, seconds since 1970, 0 where it has none. ``subject`` tells one wish to run again
    from another; it is empty where the commit alone says what is asked for.
    """

    source: Source
    commit: str
    line: str
    pull_request: int | None
    action: str = "check"
    subject: str = ""
    image: str = ""
    asked: float = 0.0
    base: str = ""


@dataclass(frozen=True, slots=True)
class CheckPull:
    """Check a pull request's head as it is now, if the person may ask for that. ``commit`` is the head that was named,
    a prefix of at least twelve digits, or empty.
    """

    source: Source
    pull_request: int
    commit: str
    subject: str


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Run the job of one check run again."""

    source: Source
    job_key: str
    subject: str


@dataclass(frozen=True, slots=True)
class Accept:
    """The re-baseline button of one check run."""

    source: Source
    job_key: str
    subject: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """Nobody waits for the checks of a line any more; with ``commit`` of that one's alone."""

    source: Source
    line: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Deliberately ignored; ``why`` is a sentence."""

    why: str


Ask = CheckCommit | CheckPull | RunAgain | Accept | Abandon | Nothing


def key_of(*parts: object) -> str:
    """A digest of what is asked for, hexadecimal: equal wishes have equal keys, whichever delivery brought them."""
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()
