"""The report as GitHub's Markdown, for a job summary, a comment or a check run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from validator.report.harmless import harmless
from validator.report.markup import code, code_block, prose, table
from validator.report.model import (
    Divergence,
    EnvironmentDifferenceRow,
    GateReport,
    LaunchRow,
    Localisation,
    Outcome,
    PolicyChangeRow,
    Report,
    SpreadRow,
    StepRow,
    WaivedFinding,
)
from validator.report.spread import SpreadTable
from validator.report.text import seconds_in_words, shortened
from validator.report.words import (
    MEANING,
    OUTCOME,
    code_in_words,
    gate_in_words,
    localisation_in_words,
    module_in_words,
    moment_in_words,
    place_in_words,
    waived_place,
)

#: Rows of each long table: the whole stays well below the 65,535 characters that GitHub accepts.
MOST_ROWS = 40
MOST_MOMENTS = 8
_MOST_VALUE = 120
_MOST_NAME = 300
_MOST_TRACED = 4
_MOST_TEXT = 4000


def render_markdown(report: Report) -> str:
    """The report as text that ends in a line feed."""
    return "\n\n".join(block for block in _blocks(harmless(report)) if block) + "\n"


def _blocks(report: Report) -> Iterator[str]:
    yield f"## {mark(report)} {prose(report.verdict.value.replace('_', ' '))}: {prose(report.pipeline)}"
    yield f"**{prose(report.sentence)}**" if prose(report.sentence) else ""
    yield (
        f"Hardware class {code(report.hardware_class)}, {seconds_in_words(report.seconds)}. "
        f"The verdict {code(report.verdict.value)} means: {prose(MEANING[report.verdict])}."
    )
    for stamp in report.stamps:
        yield f"Stamped {code(stamp)}: this run can be neither approved as a golden nor published as a gating result."
    yield policy_block(report.policy_changes)
    yield gates_block(report.gates)
    for gate in report.gates:
        if gate.divergence is not None:
            yield divergence_block(gate.name, gate.divergence)
            yield localisation_block(gate.localisation)
            yield spread_block(gate.spread)
    yield waived_block([finding for gate in report.gates for finding in gate.waived])
    yield listed("Unused waivers: nothing like this was seen", report.unused_waivers)
    yield listed("Expired waivers: they waive nothing any more", report.expired_waivers)
    yield environment_block(report.environment_difference)
    yield listed("Not exercised: these groups never changed during the run", report.unexercised)
    if report.suggested_waivers.strip():
        block = code_block(report.suggested_waivers, "yaml")
        yield details("Waiver to paste under policy, for a defect that is understood", block)
    if report.next_step:
        yield f"**Next:** {prose(shortened(report.next_step, _MOST_TEXT))}"
    if report.reproduce:
        yield f"**Reproduce:**\n\n{code_block(report.reproduce, 'sh')}"
    yield launches_block(report.launches)
    yield steps_block(report.steps)


def mark(report: Report) -> str:
    return {0: "✅", 1: "❌"}.get(report.verdict.exit_code, "⚠️")


def policy_block(rows: Sequence[PolicyChangeRow]) -> str:
    """What the change does to the policy."""
    if not rows:
        return ""
    cells = [(code(row.key), _fact(row.before), _fact(row.after)) for row in rows[:MOST_ROWS]]
    said = "The change alters the policy. This check used the base revision's; what follows has no effect on it."
    return f"### Policy changed here\n\n{said}\n\n{table(('key', 'base', 'change'), cells)}{_more(len(rows))}"


def gates_block(gates: Sequence[GateReport]) -> str:
    if not gates:
        return ""
    marks = {Outcome.HOLDS: "✅", Outcome.FAILS: "❌", Outcome.NOT_RUN: "➖"}
    rows = [
        (prose(gate.name), f"{marks.get(gate.outcome, '⚠️')} {OUTCOME[gate.outcome]}", _with_notes(gate))
        for gate in gates
    ]
    return table(("gate", "outcome", "what was found"), rows)


def _with_notes(gate: GateReport) -> str:
    return "<br>".join(prose(shortened(text, _MOST_TEXT)) for text in (gate_in_words(gate), *gate.notes[:MOST_ROWS]))


def divergence_block(gate: str, divergence: Divergence) -> str:
    lines = [
        f"### First divergence ({prose(gate)})",
        f"{prose(place_in_words(divergence))}. {prose(divergence.kind)}: {prose(divergence.sentence)}",
    ]
    metric = divergence.metric
    if metric is None:
        rows = [("expected", code(divergence.expected)), ("observed", code(divergence.observed))]
        return "\n\n".join((*lines, table(("", "digest"), rows)))
    values = [
        ("expected", code(metric.expected), code(metric.expected_bits), ""),
        (
            "observed",
            code(metric.observed),
            code(metric.observed_bits),
            "" if metric.ulps is None else f"{metric.ulps}",
        ),
    ]
    return "\n\n".join(
        (*lines, table((f"{prose(metric.name)}, {prose(metric.dtype)}", "value", "bits", "ULPs"), values))
    )


def localisation_block(found: Localisation | None) -> str:
    """The module, with class, file and line, and what it was given and returned that differs."""
    if found is None:
        return ""
    sentence = prose(shortened(localisation_in_words(found), _MOST_TEXT))
    module, place = module_in_words(found), code_in_words(found)
    lines = []
    if module or place:
        named = ", ".join(code(shortened(part, _MOST_NAME)) for part in (module, place) if part)
        lines.append(f"**Where in the code:** {named}")
    lines.append(sentence if lines else f"**Where in the code:** {sentence}")
    rows = [
        (prose(shortened(value.name, _MOST_NAME)), code(value.expected), code(value.observed))
        for value in (*found.inputs, *found.outputs)
        if value.expected != value.observed
    ][:_MOST_TRACED]
    if rows:
        lines.append(table(("what differs there", "expected", "observed"), rows))
    return "\n\n".join(lines)


def spread_block(rows: Sequence[SpreadRow]) -> str:
    if not rows:
        return ""
    header, *body = SpreadTable.of(rows).lines(MOST_MOMENTS)
    words = ("group", *(prose(moment_in_words(moment)) for moment in header[1:]))
    cells = [tuple(prose(cell) for cell in line) for line in body]
    return f"Leaves that differ, of all leaves of the group on all ranks:\n\n{table(words, cells)}"


def waived_block(findings: Sequence[WaivedFinding]) -> str:
    if not findings:
        return ""
    rows = [
        (
            prose(item.gate),
            code(item.leaf),
            prose(waived_place(item)),
            prose(item.reason),
            code(item.link),
            code(item.expires),
            code(item.observed),
        )
        for item in findings[:MOST_ROWS]
    ]
    header = ("gate", "leaf", "where", "reason", "link", "expires", "digest seen")
    return f"### Waived findings\n\n{table(header, rows)}{_more(len(findings))}"


def environment_block(rows: Sequence[EnvironmentDifferenceRow]) -> str:
    if not rows:
        return ""
    cells = [
        (
            "yes" if row.can_change_bits else "no",
            prose(row.kind),
            code(row.name),
            _fact(row.expected),
            _fact(row.observed),
            prose(row.origin),
        )
        for row in rows[:MOST_ROWS]
    ]
    header = ("can change bits", "kind", "fact", "expected", "observed", "origin")
    return f"### Environment difference\n\n{table(header, cells)}{_more(len(rows))}"


def _fact(value: str | None) -> str:
    return "absent" if value is None else code(shortened(value, _MOST_VALUE))


def listed(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    shown = "\n".join(f"- {code(shortened(item, _MOST_VALUE))}" for item in items[:MOST_ROWS])
    return f"**{title}**\n\n{shown}{_more(len(items))}"


def launches_block(launches: Sequence[LaunchRow]) -> str:
    rows = [
        (prose(item.name), prose(item.purpose), prose(item.steps), prose(item.ended), seconds_in_words(item.seconds))
        for item in launches[:MOST_ROWS]
    ]
    return details("Launches", table(("launch", "purpose", "steps", "ended", "took"), rows)) if rows else ""


def steps_block(steps: Sequence[StepRow]) -> str:
    shown = steps[:MOST_ROWS]
    names = list(dict.fromkeys(name for step in shown for name in step.metrics))[:MOST_MOMENTS]
    if not names:
        return ""
    rows = [(str(step.step), *(code(step.metrics.get(name, "")) for name in names)) for step in shown]
    header = ("step", *(prose(name) for name in names))
    return details("Steps of the reference launch", f"{table(header, rows)}{_more(len(steps))}")


def details(summary: str, content: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{content}\n\n</details>"


def _more(number: int) -> str:
    return f"\n\nAnd {number - MOST_ROWS} more in the JSON report." if number > MOST_ROWS else ""
