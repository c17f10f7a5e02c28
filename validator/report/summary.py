"""The report as the summary of a check run or a comment: what happened, in ten seconds of reading, within a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from validator.report.harmless import harmless
from validator.report.markdown import (
    MOST_ROWS,
    details,
    divergence_block,
    environment_block,
    gates_block,
    launches_block,
    listed,
    localisation_block,
    mark,
    policy_block,
    spread_block,
    steps_block,
)
from validator.report.markup import code, code_block, prose
from validator.report.model import GateReport, Outcome, Report, Verdict, WaivedFinding
from validator.report.text import seconds_in_words, shortened
from validator.report.words import MEANING, gate_in_words, ranks_in_words

#: Characters that GitHub accepts in the summary or text of a check run.
LIMIT = 65_535

#: Kept free for the line that says what was cut.
_MARGIN = 200

_MOST_SENTENCE = 800
_MOST_LINE = 2000


def render_summary(report: Report, where: str = "", limit: int = LIMIT) -> str:
    """Markdown of at most ``limit`` characters; ``where`` is the address of the full report.

    Whole sections are left out from the end where it is too long, so that no Markdown is ever broken.
    """
    return joined(list(_sections(harmless(report), where)), limit)


def joined(sections: Sequence[str], limit: int = LIMIT) -> str:
    """The sections that are not empty, in order, as far as they fit; what does not fit is said."""
    kept: list[str] = []
    room, left = limit - _MARGIN, 0
    for section in filter(None, sections):
        if len(section) + 2 <= room:
            kept.append(section)
            room -= len(section) + 2
        else:
            left += 1
    if left:
        kept.append(f"*{left} longer section{'s' if left > 1 else ''} left out here; the full report has all.*")
    return "\n\n".join(kept) + "\n"


def _sections(report: Report, where: str) -> Iterator[str]:
    """The order in which a person needs to know."""
    sentence = prose(shortened(report.sentence or MEANING[report.verdict], _MOST_SENTENCE))
    yield f"### {mark(report)} {code(report.verdict.value)} {prose(shortened(report.pipeline, 80))}: {sentence}"
    for stamp in report.stamps[:10]:
        yield f"⚠️ Stamped {code(shortened(stamp, 200))}: not a gating result."
    if report.verdict is Verdict.REBASELINED:
        yield _new_golden(report)
    for gate in report.gates:
        if gate.divergence is not None:
            yield divergence_block(gate.name, gate.divergence)
            yield localisation_block(gate.localisation)
            yield details("How it spreads", spread_block(gate.spread)) if gate.spread else ""
    yield environment_block(report.environment_difference)
    yield policy_block(report.policy_changes)
    by_name = {gate.name: gate for gate in report.gates}
    for name, title in (("resume", "Resume"), ("overhead", "Overhead")):
        if name in by_name:
            yield _gate(title, by_name[name])
    yield _waived([finding for gate in report.gates for finding in gate.waived])
    yield listed("Expired waivers: they waive nothing any more", report.expired_waivers)
    if report.next_step:
        yield f"**Next:** {prose(shortened(report.next_step, _MOST_LINE))}"
    if report.reproduce:
        yield f"**Reproduce:**\n\n{code_block(shortened(report.reproduce, _MOST_LINE), 'sh')}"
    if where:
        yield f"**Full report:** <{where}>"
    yield gates_block(report.gates)
    yield listed("Not exercised: these groups never changed during the run", report.unexercised)
    yield launches_block(report.launches)
    yield steps_block(report.steps)
    yield f"Hardware class {code(report.hardware_class)}, {seconds_in_words(report.seconds)}."


def _waived(findings: Sequence[WaivedFinding]) -> str:
    """One line a waiver: where its places are is in the full report."""
    lines: dict[str, int] = {}
    for finding in findings:
        where = ranks_in_words(finding.ranks)
        about = f"{prose(shortened(finding.reason, 300))} ({code(finding.link)}, until {code(finding.expires)})"
        line = f"- {code(shortened(finding.leaf, 200))} on {prose(where)}: {about}"
        lines[line] = lines.get(line, 0) + 1
    shown = [f"{line}, at {number} places" if number > 1 else line for line, number in list(lines.items())[:MOST_ROWS]]
    return "\n".join(["**Waived, and seen as described**\n", *shown]) if shown else ""


def _gate(title: str, gate: GateReport) -> str:
    words = {Outcome.HOLDS: "✅", Outcome.FAILS: "❌", Outcome.NOT_RUN: "➖"}
    return f"**{title}:** {words.get(gate.outcome, '⚠️')} {prose(shortened(gate_in_words(gate), _MOST_LINE))}"


def _new_golden(report: Report) -> str:
    new = report.new_golden or {}
    drift = new.get("drift")
    moved = drift.items() if isinstance(drift, dict) else ()
    largest = ", ".join(f"{name} by {value:.2%}" for name, value in moved if isinstance(value, float))
    said = f"New golden {code(str(new.get('digest', ''))[:12])}: {prose(shortened(str(new.get('reason', '')), 400))}"
    who = f"Approved by {code(str(new.get('approver', '')))}, asked for by {code(str(new.get('requester', '')))}."
    return f"{said}\n\n{who}" + (f" Moved at most: {prose(largest)}." if largest else "")
