"""A waiver that a person can paste into a pipeline's policy, made from what a check found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import groupby

from validator.pipeline.waivers import Finding, Sighting, Span
from validator.trajectory.groups import Moment

REASON_TO_WRITE = "WRITE HERE what is broken upstream, and why it does no harm"
LINK_TO_WRITE = "https://WRITE-HERE-where-it-is-reported"


def suggest_waivers(findings: Iterable[Finding], compared: Mapping[int, Sequence[Moment]], expires: date) -> str:
    """YAML for ``policy.waivers`` that covers exactly ``findings``: one waiver a leaf; empty where nothing was found.

    ``compared`` gives, for each restore, the moments of its segment that were compared, in order: a defect seen at
    every moment through the last is written ``.. end``, since a segment that is killed may be longer next time.
    """
    by_leaf: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        by_leaf.setdefault((finding.gate, f"{finding.group}/{finding.leaf}"), []).append(finding)
    lines: list[str] = []
    for (gate, name), found in by_leaf.items():
        lines += [f"- gate: {gate}", f"  leaf: {json.dumps(name)}", "  seen:"]
        for sighting in sightings_of(found, compared):
            place = f"restore: {sighting.restore}, ranks: {list(sighting.ranks)}, moments: {sighting.moments}"
            lines.append(f'  - {{{place}, observed: "{sighting.observed}"}}')
        lines += [f"  reason: {REASON_TO_WRITE}", f"  link: {LINK_TO_WRITE}", f"  expires: {expires.isoformat()}"]
    return "".join(f"{line}\n" for line in lines)


def sightings_of(findings: Iterable[Finding], compared: Mapping[int, Sequence[Moment]]) -> tuple[Sighting, ...]:
    """The fewest sightings that cover findings of one leaf and nothing else, by restore, first moment and rank."""
    places: dict[tuple[int, int, str], set[Moment]] = {}
    for finding in findings:
        places.setdefault((finding.restore, finding.rank, finding.observed), set()).add(finding.moment)
    ranks: dict[tuple[int, Span, str], list[int]] = {}
    for (restore, rank, observed), moments in sorted(places.items()):
        order = compared.get(restore, ()) or sorted(moments)
        for span in _spans(moments, order):
            ranks.setdefault((restore, span, observed), []).append(rank)
    ordered = sorted(ranks.items(), key=lambda entry: (entry[0][0], entry[0][1].first.order, entry[1]))
    return tuple(Sighting(restore, tuple(on), span, observed) for (restore, span, observed), on in ordered)


def _spans(moments: set[Moment], order: Sequence[Moment]) -> list[Span]:
    """Runs of neighbours within ``order``; a run of several that reaches its end is open."""
    spans = []
    for inside, run in groupby(order, key=lambda moment: moment in moments):
        if inside:
            members = list(run)
            is_open = len(members) > 1 and members[-1] == order[-1]
            spans.append(Span(members[0], None if is_open else members[-1]))
    return spans
