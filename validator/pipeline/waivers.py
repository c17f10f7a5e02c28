"""Waivers: known defects that the policy tolerates, each bound to a leaf, its places and the wrong digest seen there.

A place is a restore and a span of moments after it: ``setup:3 .. end`` of the segment restored from step 3. The same
digest at another place, and another digest at the same place, are not waived.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Self

from validator.trajectory.groups import Group, Moment

_SPAN = re.compile(r"([^\s.]+)(?:\s*\.\.\s*([^\s.]+))?")


@dataclass(frozen=True, slots=True)
class Finding:
    """One leaf that differs at one moment of a segment of the resume chain.

    ``restore`` is the step that the segment was restored from (0: the first segment, which starts fresh).
    ``observed`` is the leaf's digest there, 32 hexadecimal digits.
    """

    gate: str
    restore: int
    moment: Moment
    rank: int
    group: Group
    leaf: str
    observed: str


@dataclass(frozen=True, slots=True)
class Span:
    """Moments of one segment from ``first`` through ``last``; with ``last=None`` to the segment's end."""

    first: Moment
    last: Moment | None

    def __contains__(self, moment: Moment) -> bool:
        return self.first.order <= moment.order and (self.last is None or moment.order <= self.last.order)

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first} .. {self.last or 'end'}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``setup:3``, ``setup:3 .. step:5`` or ``setup:3 .. end``; raises ``ValueError`` for anything else."""
        match = _SPAN.fullmatch(text.strip())
        if match is None:
            raise ValueError("no span of moments")
        first = Moment.parse(match[1])
        if match[2] == "end":
            return cls(first, None)
        last = Moment.parse(match[2]) if match[2] else first
        if last.order < first.order:
            raise ValueError("the last moment comes before the first")
        return cls(first, last)


@dataclass(frozen=True, slots=True)
class Sighting:
    """Where a waived defect is seen: these ranks, this restore, these moments, this wrong digest at all of them."""

    restore: int
    ranks: tuple[int, ...]
    moments: Span
    observed: str

    def at(self, finding: Finding) -> bool:
        """The finding stands at this place, whatever its digest."""
        return finding.restore == self.restore and finding.rank in self.ranks and finding.moment in self.moments

    def covers(self, finding: Finding) -> bool:
        """The finding stands at this place with this digest."""
        return self.at(finding) and finding.observed == self.observed

    def __str__(self) -> str:
        ranks = ", ".join(map(str, self.ranks))
        return f"restore {self.restore}, {self.moments}, rank{'s' if len(self.ranks) > 1 else ''} {ranks}"


@dataclass(frozen=True, slots=True)
class Waiver:
    """One known defect. ``expires`` is the last day on which it holds."""

    gate: str
    group: Group
    leaf: str
    seen: tuple[Sighting, ...]
    reason: str
    link: str
    expires: date

    @property
    def name(self) -> str:
        """``rng/expert-parallel-rng``"""
        return f"{self.group}/{self.leaf}"

    @property
    def ranks(self) -> tuple[int, ...]:
        """All ranks on which it is seen, ascending."""
        return tuple(sorted({rank for sighting in self.seen for rank in sighting.ranks}))

    def expired(self, today: date) -> bool:
        """It holds no longer: a finding that it covers fails all the same."""
        return today > self.expires

    def covers(self, finding: Finding) -> bool:
        """Leaf, place and wrong digest are those of the waiver (its expiry is not looked at)."""
        return self._is_about(finding) and any(sighting.covers(finding) for sighting in self.seen)

    def contradicts(self, finding: Finding) -> bool:
        """Leaf and place are those of the waiver, the wrong digest is another one."""
        return (
            self._is_about(finding) and any(sighting.at(finding) for sighting in self.seen) and not self.covers(finding)
        )

    def unseen(self, findings: Iterable[Finding]) -> tuple[Sighting, ...]:
        """The sightings that cover none of ``findings``: what can be taken out of the waiver."""
        about = [finding for finding in findings if self._is_about(finding)]
        return tuple(sighting for sighting in self.seen if not any(map(sighting.covers, about)))

    def _is_about(self, finding: Finding) -> bool:
        return (finding.gate, finding.group, finding.leaf) == (self.gate, self.group, self.leaf)
