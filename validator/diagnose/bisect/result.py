"""What a bisection found out: values only."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from validator.diagnose.bisect.packages import Change
from validator.diagnose.bisect.search import Answer
from validator.report.model import Divergence, Localisation


class Outcome(StrEnum):
    """How a bisection ended."""

    FOUND = "found"
    AGREE = "agree"  # both sets compute the same bits: no change flips the outcome
    UNKNOWN = "unknown"  # it could not be found out

    @property
    def exit_code(self) -> int:
        return {Outcome.FOUND: 0, Outcome.AGREE: 1, Outcome.UNKNOWN: 3}[self]


@dataclass(frozen=True, slots=True)
class Tested:
    """One set of changes that was launched, and what came of it."""

    name: str
    changes: tuple[str, ...]
    answer: Answer
    sentence: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Bisected:
    """The whole answer. ``culprits`` is a smallest set of changes that flips the outcome, empty where there is none.

    ``divergence`` is where the first set with only ``culprits`` changed first differs from the first set;
    ``localisation`` is the module, where both were launched with a trace. ``launches`` counts all of them.
    """

    outcome: Outcome
    sentence: str
    pipeline: str
    hardware_class: str
    before: str
    after: str
    changes: tuple[Change, ...]
    culprits: tuple[Change, ...] = ()
    divergence: Divergence | None = None
    localisation: Localisation | None = None
    tests: tuple[Tested, ...] = ()
    remarks: tuple[str, ...] = ()
    launches: int = 0
    seconds: float = 0.0
    out: str = ""
    reproduce: str = ""
