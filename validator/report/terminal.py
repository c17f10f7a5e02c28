"""The report for a person at a terminal: the answer first, then why, then what to do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import TextIO

from validator.report.harmless import harmless
from validator.report.model import (
    Divergence,
    EnvironmentDifferenceRow,
    GateReport,
    Localisation,
    LocalisationOutcome,
    Outcome,
    Report,
    SpreadRow,
    Verdict,
    WaivedFinding,
)
from validator.report.spread import ELLIPSIS, SpreadTable
from validator.report.style import Style, style_for
from validator.report.text import counted, shortened, write_text
from validator.report.words import (
    OUTCOME,
    code_in_words,
    distance_in_words,
    gate_in_words,
    launch_in_words,
    localisation_in_words,
    module_in_words,
    place_in_words,
    waived_place,
)

#: Rows of the environment difference that are shown; the JSON report has them all.
ENVIRONMENT_ROWS = 20

_VALUE_WIDTH = 48

#: Columns of the spread table where moments are left out.
_GAP = 3


def show(report: Report, stream: TextIO) -> None:
    """Write the report to ``stream``, in colour and to its width where it is a terminal."""
    write_text(stream, render_terminal(report, style_for(stream), shutil.get_terminal_size((100, 24)).columns))


def render_terminal(report: Report, style: Style, width: int = 100) -> str:
    """The report as text that ends in a line feed; without colour its only control character is the line feed."""
    clean = harmless(report)
    blocks = [list(block) for block in _blocks(clean, style, width)]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _blocks(report: Report, style: Style, width: int) -> Iterator[Iterator[str]]:
    yield _headline(report, style)
    yield _gates(report.gates, style)
    for gate in report.gates:
        if gate.divergence is not None:
            yield _divergence(gate.name, gate.divergence, style)
            yield _localisation(gate.localisation, style)
            yield _spread(gate.spread, style, width)
    yield _waived([finding for gate in report.gates for finding in gate.waived], style)
    yield _listed("Unused waivers (nothing like this was seen; remove them)", report.unused_waivers, style)
    yield _listed("Expired waivers (they waive nothing any more)", report.expired_waivers, style)
    can, cannot = (
        [row for row in report.environment_difference if row.can_change_bits is value] for value in (True, False)
    )
    yield _environment(can, "Environment: differs, and can change bits", style)
    yield _environment(cannot, "Environment: differs otherwise", style)
    yield _listed("Policy changed here (this check used the base's, so it has no effect)", _policy(report), style)
    yield _listed("Not exercised (never changed during the run, so equality says nothing)", report.unexercised, style)
    yield _launches(report, style)
    yield _suggestion(report, style)
    yield _closing(report, style)


def _headline(report: Report, style: Style) -> Iterator[str]:
    yield f"{style.title(_toned(report.verdict, style))}  {report.sentence}"
    about = [f"pipeline {report.pipeline}"] if report.pipeline else []
    about += [f"hardware class {report.hardware_class}"] if report.hardware_class else []
    about += [_golden_in_words(report)] if report.golden else []
    yield style.quiet(", ".join([*about, f"exit {report.verdict.exit_code}"]))
    for stamp in report.stamps:
        yield style.open(f"stamped {stamp}: this run can be neither approved as a golden nor published as gating")


def _golden_in_words(report: Report) -> str:
    golden = report.golden or {}
    recorded, approver = golden.get("recorded"), golden.get("approver")
    words = "golden"
    words += f" of {recorded}" if recorded else ""
    return words + (f" approved by {approver}" if approver else "")


def _toned(verdict: Verdict, style: Style) -> str:
    name = verdict.value.upper()
    if verdict.exit_code == 0:
        return style.good(name)
    return style.bad(name) if verdict.exit_code == 1 else style.open(name)


def _gates(gates: Sequence[GateReport], style: Style) -> Iterator[str]:
    if not gates:
        return
    yield style.title("Gates")
    names = max(len(gate.name) for gate in gates)
    for gate in gates:
        word = OUTCOME[gate.outcome]
        tone = {Outcome.HOLDS: style.good, Outcome.FAILS: style.bad}.get(gate.outcome, style.open)
        yield f"  {gate.name:<{names}}  {tone(word)}{' ' * (11 - len(word))}  {gate_in_words(gate)}"
        for note in gate.notes:
            yield style.quiet(f"  {'':<{names}}  {'':11}  {note}")


def _divergence(gate: str, divergence: Divergence, style: Style) -> Iterator[str]:
    yield style.title(f"First divergence ({gate})")
    yield f"  where     {place_in_words(divergence)}"
    yield f"  what      {divergence.kind}: {divergence.sentence}"
    metric = divergence.metric
    if metric is None:
        yield f"  expected  {divergence.expected or 'nothing'}"
        yield f"  observed  {divergence.observed or 'nothing'}"
        return
    values = max(len(metric.expected), len(metric.observed))
    apart = distance_in_words(metric)
    yield f"  metric    {metric.name}, {metric.dtype}" + (f", {apart}" if apart else "")
    yield f"  expected  {metric.expected:<{values}}  bits {metric.expected_bits}"
    yield f"  observed  {metric.observed:<{values}}  bits {metric.observed_bits}"


def _localisation(found: Localisation | None, style: Style) -> Iterator[str]:
    if found is None:
        return
    yield style.title("Where in the code")
    for word, value in (("module", module_in_words(found)), ("code", code_in_words(found))):
        if value:
            yield f"  {word:<8}  {value}"
    yield f"  found     {localisation_in_words(found)}"
    differing = [value for value in found.outputs if value.expected != value.observed]
    if found.outcome is LocalisationOutcome.MODULE and differing:
        first = differing[0]
        yield f"  expected  {first.expected or 'nothing'}, {first.name}"
        yield f"  observed  {first.observed or 'nothing'}"


def _spread(rows: Sequence[SpreadRow], style: Style, width: int) -> Iterator[str]:
    if not rows:
        return
    table = SpreadTable.of(rows)
    names = max(len(group) for group in (*table.groups, "ranks"))
    cells = [cell for by_moment in table.cells.values() for cell in by_moment.values()]
    column = max(len(cell) for cell in (*cells, *table.moments)) + 2
    yield style.title("How it spread (leaves that differ / leaves of the group, all ranks)")
    header, *body = table.lines((width - names - 2 - _GAP) // column)
    widths = [_GAP if moment == ELLIPSIS else column for moment in header[1:]]
    for row in (header, *body):
        yield f"  {row[0]:<{names}}" + "".join(f"{cell:>{size}}" for cell, size in zip(row[1:], widths, strict=True))


def _waived(findings: Sequence[WaivedFinding], style: Style) -> Iterator[str]:
    if not findings:
        return
    defects: dict[tuple[str, ...], list[WaivedFinding]] = {}
    for finding in findings:
        key = (finding.gate, finding.leaf, finding.reason, finding.link, finding.expires)
        defects.setdefault(key, []).append(finding)
    yield style.title(f"Waived: {counted(len(defects), 'known defect')}, seen as the policy describes")
    for (gate, leaf, reason, link, expires), seen in defects.items():
        yield f"  {gate}: {leaf}"
        yield from (f"    {waived_place(finding)}, digest {finding.observed}" for finding in seen)
        yield style.quiet(f"    {reason}")
        yield style.quiet(f"    {link}, expires {expires}")


def _listed(title: str, items: Sequence[str], style: Style) -> Iterator[str]:
    if items:
        yield style.title(title)
        yield from (f"  {item}" for item in items)


def _environment(rows: Sequence[EnvironmentDifferenceRow], title: str, style: Style) -> Iterator[str]:
    if rows:
        yield style.title(title)
        yield from _environment_rows(rows[:ENVIRONMENT_ROWS])
    if len(rows) > ENVIRONMENT_ROWS:
        yield style.quiet(f"  and {len(rows) - ENVIRONMENT_ROWS} more; the JSON report has them all")


def _environment_rows(rows: Sequence[EnvironmentDifferenceRow]) -> Iterator[str]:
    kinds = max(len(row.kind) for row in rows)
    names = max(len(row.name) for row in rows)
    for row in rows:
        expected, observed = _fact(row.expected), _fact(row.observed)
        yield f"  {row.kind:<{kinds}}  {row.name:<{names}}  {expected} -> {observed}  ({row.origin})"


def _policy(report: Report) -> list[str]:
    return [f"{row.key}: {_fact(row.before)} -> {_fact(row.after)}" for row in report.policy_changes]


def _fact(value: str | None) -> str:
    return "absent" if value is None else shortened(value, _VALUE_WIDTH) or "empty"


def _launches(report: Report, style: Style) -> Iterator[str]:
    # Progress has shown them already; the logs matter when something went wrong in one.
    if report.verdict is Verdict.ERROR and report.launches:
        yield style.title("Launches")
        for launch in report.launches:
            yield f"  {launch_in_words(launch)}"
            if launch.log:
                yield style.quiet(f"    log {launch.log}")


def _suggestion(report: Report, style: Style) -> Iterator[str]:
    if report.suggested_waivers.strip():
        yield style.title("To waive what was found (only a defect that is understood), paste under policy:")
        yield from report.suggested_waivers.strip("\n").split("\n")


def _closing(report: Report, style: Style) -> Iterator[str]:
    for title, text in (("Next", report.next_step), ("Reproduce", report.reproduce), ("Output", report.out)):
        if text:
            first, *rest = text.split("\n")
            yield f"{style.title(title)}{' ' * (9 - len(title))}  {first}"
            yield from (f"{'':9}  {line}" for line in rest)
