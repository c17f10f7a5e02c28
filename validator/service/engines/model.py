"""What every engine can do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from validator.errors import ValidatorError


class EngineError(ValidatorError):
    """The engine could not be asked, or refused: a failure of the machinery.

    ``final``: to try again is of no use. ``unsure``: the engine may have done it all the same.
    """

    def __init__(self, sentence: str, *, final: bool = False, unsure: bool = False) -> None:
        super().__init__(sentence)
        self.final = final
        self.unsure = unsure


@dataclass(frozen=True, slots=True)
class Order:
    """What is handed over. ``attempt`` is the key that the engine knows it by, however often it is handed over;
    ``token`` lets the runner push this attempt's result and nothing else.
    """

    attempt: str
    repository: str
    installation: int | None
    commit: str
    pipeline: str
    image: str
    pull_request: int | None
    token: str


class Standing(StrEnum):
    """How an attempt stands with its engine."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"  # nothing more will come
    LOST = "lost"  # the engine does not know it


@dataclass(frozen=True, slots=True)
class Look:
    """``sentence`` says how it stands, or what went wrong; ``final`` that another attempt would end the same."""

    standing: Standing
    sentence: str = ""
    final: bool = False


class Engine(Protocol):
    """Carries attempts out. Every call may raise ``EngineError``; every call may be repeated."""

    name: str
    #: How long a result may still come after the attempt has ended, in seconds.
    grace: float
    #: How long a hand-over that was begun may take to be seen, in seconds.
    delay: float
    #: Whether the runner is handed a token of its own.
    tokens: bool

    def has_room(self) -> bool:
        """Whether one more is to be handed over now; an engine with a queue of its own always has."""

    def find(self, order: Order, since: float) -> str | None:
        """The engine's name of an attempt that was handed over before, ``None`` where it does not know it."""

    def hand_over(self, order: Order) -> str:
        """Hand an attempt over; gives the engine's name for it, empty where that is only found later."""

    def look(self, order: Order, external: str) -> Look:
        """How it stands."""

    def cancel(self, order: Order, external: str) -> None:
        """End it; one that has ended or is not known is no error."""
