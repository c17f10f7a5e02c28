"""What a self-test found out: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

SCHEMA = "validator/selftest"
VERSION = 1


class Outcome(StrEnum):
    """What became of a fault."""

    CAUGHT_AND_NAMED = "caught_and_named"
    CAUGHT = "caught"  # but named by another place
    MISSED = "missed"
    NO_EFFECT = "no_effect"  # no bit changed here
    NOT_APPLICABLE = "not_applicable"  # the pipeline has nothing that it could happen to
    ERROR = "error"  # it could not be found out

    @property
    def in_words(self) -> str:
        return str(self).replace("_", " ")


@dataclass(frozen=True, slots=True)
class Approaches:
    """What two other ways of comparing would have said of the same trajectories."""

    five_decimals: bool = False
    exact_loss: bool = False


@dataclass(frozen=True, slots=True)
class FaultResult:
    """One fault. ``localised`` is ``None`` where no module is the cause, or none was looked for."""

    name: str
    category: str
    does: str
    gate: str
    outcome: Outcome
    expected: str = ""
    found: str = ""
    module: str = ""
    found_module: str = ""
    localised: bool | None = None
    approaches: Approaches | None = None
    sentence: str = ""
    seconds: float = 0.0
    launches: int = 0

    @property
    def effective(self) -> bool:
        """Whether it says anything about the product."""
        return self.outcome in {Outcome.CAUGHT_AND_NAMED, Outcome.CAUGHT, Outcome.MISSED}


@dataclass(frozen=True, slots=True)
class Share:
    """``part`` of ``whole``."""

    part: int
    whole: int

    @property
    def complete(self) -> bool:
        return self.part == self.whole

    def __str__(self) -> str:
        return f"{self.part} of {self.whole}"


@dataclass(frozen=True, slots=True)
class SelfTestResult:
    """The matrix. ``clean`` is a sentence about the control launches, ``clean_holds`` whether they are clean."""

    pipeline: str
    hardware_class: str
    started: str
    seconds: float
    quick: bool
    clean_holds: bool
    clean: str
    faults: tuple[FaultResult, ...]
    stamps: tuple[str, ...] = field(default=())

    @property
    def effective(self) -> tuple[FaultResult, ...]:
        return tuple(each for each in self.faults if each.effective)

    @property
    def caught(self) -> Share:
        effective = self.effective
        return Share(sum(each.outcome is not Outcome.MISSED for each in effective), len(effective))

    @property
    def named(self) -> Share:
        """Of the effective ones, named by the place that the catalogue expects."""
        effective = self.effective
        return Share(sum(each.outcome is Outcome.CAUGHT_AND_NAMED for each in effective), len(effective))

    @property
    def localised(self) -> Share:
        """Of the effective ones with a module as their cause, localised to that module."""
        asked = [each for each in self.effective if each.localised is not None]
        return Share(sum(bool(each.localised) for each in asked), len(asked))

    @property
    def holds(self) -> bool:
        """All that is effective is caught and named, nothing failed, and the clean control is clean."""
        failed = any(each.outcome is Outcome.ERROR for each in self.faults)
        return self.clean_holds and self.caught.complete and self.named.complete and not failed

    def seen_by(self, approach: str) -> Share:
        """How many effective faults, of those with losses to compare, another approach would have seen."""
        told = [each.approaches for each in self.effective if each.approaches is not None]
        return Share(sum(bool(getattr(each, approach)) for each in told), len(told))

    def to_json(self) -> Mapping[str, Any]:
        """The record that a file holds; ``docs/selftest.md`` describes it."""
        shares = {"caught": self.caught, "named": self.named, "localised": self.localised}
        shares |= {"five_decimals": self.seen_by("five_decimals"), "exact_loss": self.seen_by("exact_loss")}
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "pipeline": self.pipeline,
            "hardware_class": self.hardware_class,
            "started": self.started,
            "seconds": round(self.seconds, 1),
            "quick": self.quick,
            "holds": self.holds,
            "clean": {"holds": self.clean_holds, "sentence": self.clean},
            "rates": {name: asdict(share) for name, share in shares.items()},
            "faults": [asdict(each) | {"seconds": round(each.seconds, 1)} for each in self.faults],
            "stamps": list(self.stamps),
        }
