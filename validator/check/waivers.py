"""Applies the policy's waivers to what the resume chain finds, and keeps what was found for people."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import final

from validator.comparison import Divergence
from validator.pipeline import Finding, Waiver, suggest_waivers
from validator.report.model import WaivedFinding
from validator.trajectory.differences import Kind
from validator.trajectory.groups import Moment

#: Findings kept for a suggested waiver; a chain that is broken throughout has far more, and none of them is to be
#: waived.
_KEPT = 10_000

#: A waiver is suggested where at most this many leaves differ: beyond, it is no single known defect.
_SUGGESTED_LEAVES = 8

#: A suggested waiver lasts this long.
_SUGGESTED_DAYS = 180


@final
@dataclass(slots=True)
class WaiverBook:
    """The waivers of one gate during one check. ``today`` decides which have expired: those waive nothing."""

    gate: str
    waivers: tuple[Waiver, ...]
    today: date
    unwaived: list[Finding] = field(default_factory=list)
    compared: dict[int, list[Moment]] = field(default_factory=dict)
    _waived: dict[int, list[Finding]] = field(default_factory=dict)

    def judge(self, restore: int, found: Divergence) -> str | None:
        """Name of the waiver that covers a difference found in the segment restored from step ``restore``, else
        ``None``.

        Only other bits under the same name can be waived: a leaf that is gone or renamed has no wrong digest of its
        own.
        """
        if found.kind is not Kind.LEAF or found.rank is None or found.group is None or found.leaf is None:
            return None
        finding = Finding(self.gate, restore, found.moment, found.rank, found.group, found.leaf.name, found.observed)
        for number, waiver in enumerate(self.waivers):
            if waiver.gate == self.gate and not waiver.expired(self.today) and waiver.covers(finding):
                self._waived.setdefault(number, []).append(finding)
                return waiver.name
        if len(self.unwaived) < _KEPT:
            self.unwaived.append(finding)
        return None

    def waived(self) -> tuple[WaivedFinding, ...]:
        """What was seen as the policy describes it: one entry a waiver, restore point and wrong digest."""
        entries = []
        for number, findings in sorted(self._waived.items()):
            waiver = self.waivers[number]
            for sighting in waiver.seen:
                covered = [finding for finding in findings if sighting.covers(finding)]
                if covered:
                    entries.append(
                        WaivedFinding(
                            gate=self.gate,
                            leaf=waiver.name,
                            ranks=tuple(sorted({finding.rank for finding in covered})),
                            places=(f"restore {sighting.restore}, {sighting.moments}",),
                            observed=sighting.observed,
                            reason=waiver.reason,
                            link=waiver.link,
                            expires=waiver.expires.isoformat(),
                        )
                    )
        return tuple(entries)

    def unused(self) -> tuple[str, ...]:
        """Waivers, and sightings of them, that nothing was found for: they can be taken out of the pipeline."""
        lines = []
        for number, waiver in enumerate(self.waivers):
            if waiver.gate != self.gate or waiver.expired(self.today):
                continue
            lines += [f"{waiver.name}: {sighting}" for sighting in waiver.unseen(self._waived.get(number, ()))]
        return tuple(lines)

    def expired(self) -> tuple[str, ...]:
        """Waivers that hold no longer."""
        return tuple(
            f"{waiver.name} expired on {waiver.expires.isoformat()}"
            for waiver in self.waivers
            if waiver.expired(self.today)
        )

    def contradicted(self) -> tuple[str, ...]:
        """Leaves that are waived at their place, but with another wrong digest than the one found."""
        lines: dict[str, None] = {}
        for finding in self.unwaived:
            if any(waiver.contradicts(finding) for waiver in self.waivers):
                place = f"{finding.moment} after the restore of step {finding.restore}, rank {finding.rank}"
                leaf = f"{finding.group}/{finding.leaf}"
                lines.setdefault(f"{leaf} is waived with another wrong digest than {finding.observed}, seen at {place}")
        return tuple(list(lines)[:3])

    def suggestion(self) -> str:
        """YAML for the policy that would waive what was found; empty where nothing was, or far too much."""
        return suggestion(self.unwaived, self.compared, self.today)


def suggestion(findings: Iterable[Finding], compared: dict[int, list[Moment]], today: date) -> str:
    """Ready-to-paste waivers for a few leaves; empty for none and for more than a single defect would touch."""
    found = list(findings)
    leaves = {(finding.group, finding.leaf) for finding in found}
    if not leaves or len(leaves) > _SUGGESTED_LEAVES or len(found) >= _KEPT:
        return ""
    return suggest_waivers(found, compared, today + timedelta(days=_SUGGESTED_DAYS))
