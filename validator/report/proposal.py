"""A proposed golden beside the one that it would replace: what an owner looks at before approving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from validator.report.harmless import harmless_text
from validator.report.markdown import divergence_block, environment_block
from validator.report.markup import code, prose, table
from validator.report.model import Divergence, EnvironmentDifferenceRow, StepRow
from validator.report.summary import joined
from validator.report.text import shortened

_MOST_STEPS = 40
_MOST_METRICS = 4


@dataclass(frozen=True, slots=True)
class Proposal:
    """One new golden. ``old_digest`` and ``old_steps`` are empty for the first one under its key.

    ``drift`` is the largest relative move by metric.
    """

    pipeline: str
    hardware_class: str
    reason: str
    requester: str
    approver: str
    digest: str
    old_digest: str
    drift: Mapping[str, float]
    divergence: Divergence | None
    environment_difference: tuple[EnvironmentDifferenceRow, ...]
    old_steps: tuple[StepRow, ...]
    new_steps: tuple[StepRow, ...]


def render_proposals(proposals: Sequence[Proposal], limit: int = 60_000) -> str:
    """The body of a re-baseline: for each golden its reason, metrics side by side, drift, divergence, environment."""
    sections = ["## Re-baseline" if len(proposals) == 1 else f"## Re-baseline of {len(proposals)} goldens"]
    for proposal in proposals:
        sections += _sections(harmless_text(proposal))
    sections.append("A review by the owners of `golden/` approves it; the next check reproduces it before it counts.")
    return joined(sections, limit)


def _sections(proposal: Proposal) -> list[str]:
    replaces = f"replaces {code(proposal.old_digest[:12])}" if proposal.old_digest else "is the first of its kind"
    about = (
        f"### {code(proposal.pipeline)} on {code(proposal.hardware_class)}\n\n"
        f"**Reason:** {prose(shortened(proposal.reason, 1000))}\n\n"
        f"Golden {code(proposal.digest[:12])} {replaces}. Asked for by {code(proposal.requester)}, "
        f"approver {code(proposal.approver)}."
    )
    drift = [(code(name), code(f"{value:.3%}")) for name, value in proposal.drift.items()]
    sections = [about]
    if drift:
        sections.append(table(("metric", "largest relative move"), drift))
    if proposal.divergence is not None:
        sections.append(divergence_block("golden", proposal.divergence))
    sections += [environment_block(proposal.environment_difference), _side_by_side(proposal)]
    return sections


def _side_by_side(proposal: Proposal) -> str:
    old = {row.step: row.metrics for row in proposal.old_steps}
    names = list(dict.fromkeys(name for row in proposal.new_steps for name in row.metrics))
    chosen = sorted(names, key=lambda name: ("loss" not in name and "norm" not in name, names.index(name)))[
        :_MOST_METRICS
    ]
    if not chosen:
        return ""
    header = ("step", *(f"{prose(name)}, {side}" for name in chosen for side in ("old", "new")))
    rows = [
        (
            str(row.step),
            *(code(_value(where, name)) for name in chosen for where in (old.get(row.step, {}), row.metrics)),
        )
        for row in proposal.new_steps[:_MOST_STEPS]
    ]
    return f"**Metrics, old and new**\n\n{table(header, rows)}"


def _value(metrics: Mapping[str, str], name: str) -> str:
    return metrics.get(name, "")
