"""The parts of the page that come from the report alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from validator.report.html.elements import NOTHING, Html, code, copyable, details, join, section, table, tag, text
from validator.report.model import (
    Divergence,
    EnvironmentDifferenceRow,
    GateReport,
    LaunchRow,
    Outcome,
    Report,
    SpreadRow,
    StepRow,
    WaivedFinding,
)
from validator.report.spread import SpreadTable
from validator.report.text import seconds_in_words
from validator.report.words import (
    MEANING,
    OUTCOME,
    distance_in_words,
    gate_in_words,
    moment_in_words,
    place_in_words,
    ranks_in_words,
)

#: Rows of one table at most; the JSON report has them all.
_MOST = 500

#: Class names of the style sheet by exit code and by outcome.
_TONES = {0: "good", 1: "bad", 3: "failed", 4: "open"}
_OUTCOMES = {
    Outcome.HOLDS: "good",
    Outcome.FAILS: "bad",
    Outcome.ERROR: "failed",
    Outcome.NO_BASELINE: "open",
    Outcome.INCONCLUSIVE: "open",
    Outcome.NOT_RUN: "idle",
}


def headline(report: Report) -> Html:
    """The verdict, what it means, and what to do next."""
    verdict = report.verdict
    badge = tag("span", text(verdict.value.replace("_", " ")), class_=f"badge {_TONES[verdict.exit_code]}")
    facts = [("pipeline", report.pipeline), ("hardware class", report.hardware_class), ("started", report.started),
             ("took", seconds_in_words(report.seconds)), ("exit status", str(verdict.exit_code))]  # fmt: skip
    parts = [
        tag("h1", badge, text(" "), tag("span", text(report.pipeline), class_="name")),
        tag("p", text(report.sentence), class_="sentence"),
        tag("p", text(f"{verdict.value} means: {MEANING[verdict]}."), class_="quiet"),
        tag("dl", *(join([tag("dt", text(name)), tag("dd", text(value))]) for name, value in facts), class_="facts"),
    ]
    parts += [
        tag("p", tag("b", text("Stamped ")), code(stamp),
            text(": this run can be neither approved as a golden nor published as a gating result."), class_="note")
        for stamp in report.stamps
    ]  # fmt: skip
    if report.next_step:
        parts.append(tag("p", tag("b", text("What to do next. ")), text(report.next_step), class_="next"))
    if report.reproduce:
        parts.append(copyable(report.reproduce, "the command that does the same again"))
    return tag("header", *parts, id="verdict", class_=_TONES[verdict.exit_code])


def gates(report: Report) -> Html:
    """Every gate with its own outcome."""
    cards = (
        tag(
            "li",
            tag("h3", tag("span", text(OUTCOME[gate.outcome]), class_=f"badge {_OUTCOMES[gate.outcome]}"),
                text(f" {gate.name}")),
            tag("p", text(gate_in_words(gate))),
            _notes(gate.notes),
        )
        for gate in report.gates
    )  # fmt: skip
    return section("gates", "Gates", tag("ul", *cards, class_="cards")) if report.gates else NOTHING


def _notes(notes: Sequence[str]) -> Html:
    return tag("ul", *(tag("li", text(note)) for note in notes[:_MOST]), class_="notes") if notes else NOTHING


#: A cell of a map: the map's identity, the group's and the column's places in it.
type Target = tuple[str, int, int]


def divergences(found: Iterable[GateReport], targets: Mapping[str, Target]) -> Html:
    """Where the bits part, for each gate that found it; ``targets`` are the cells that show a gate's."""
    parts = [
        part
        for gate in found
        if gate.divergence is not None
        for part in (_divergence(gate.name, gate.divergence, targets.get(gate.name)), _spread(gate.spread))
    ]
    return section("divergence", "First divergence", *parts)


def _divergence(gate: str, found: Divergence, target: Target | None) -> Html:
    place = tag("p", tag("b", text(place_in_words(found))), text(f" ({found.kind}; gate {gate})"), class_="place")
    button = NOTHING
    if target is not None:
        place_on = {"data_map": target[0], "data_group": target[1], "data_column": target[2]}
        button = tag("button", text("Show it on the map"), type="button", class_="open", **place_on)
    metric = found.metric
    if metric is None:
        rows = [(text("expected"), code(found.expected or "none")), (text("observed"), code(found.observed or "none"))]
        sides = table(
            (text("side"), text("digest")), rows, f"Both sides of {found.leaf or found.group or 'the length'}"
        )
    else:
        values = [
            (text("expected"), code(metric.expected), code(metric.expected_bits)),
            (text("observed"), code(metric.observed), code(metric.observed_bits)),
        ]
        header = (text("side"), text("value"), text("bits"))
        apart = distance_in_words(metric) or "no distance in ULPs"
        sides = table(header, values, f"{metric.name}, {metric.dtype}: {apart}")
    return tag("div", place, tag("p", text(found.sentence), class_="quiet"), sides, button, class_="divergence")


def _spread(rows: Sequence[SpreadRow]) -> Html:
    if not rows:
        return NOTHING
    header, *body = SpreadTable.of(rows).lines(24)
    head = (text("state group"), *(text(moment_in_words(moment)) for moment in header[1:]))
    shown = table(head, [[text(cell) for cell in line] for line in body], "Leaves that differ, of all on those ranks")
    return details(text("How it spreads, in numbers"), shown)


def waivers(report: Report) -> Html:
    """Known defects that were seen, and what the policy says that did not happen."""
    seen = [finding for gate in report.gates for finding in gate.waived]
    parts = []
    if seen:
        header = [text(word) for word in ("leaf", "where", "reason", "link", "expires", "wrong digest")]
        parts.append(table(header, [_waiver(each) for each in seen[:_MOST]], "Waived findings"))
    parts.append(_listed("Unused: nothing like this was seen", report.unused_waivers))
    parts.append(_listed("Expired: they waive nothing any more", report.expired_waivers))
    if report.suggested_waivers.strip():
        parts.append(tag("p", text("To paste under policy, only for a defect that is known and understood:")))
        parts.append(copyable(report.suggested_waivers, "the suggested waivers"))
    return section("waivers", "Waivers", *parts)


def _waiver(found: WaivedFinding) -> list[Html]:
    safe = found.link.startswith(("https://", "http://"))
    link = tag("a", text(found.link), href=found.link, rel="noreferrer noopener") if safe else code(found.link)
    place = ", ".join((ranks_in_words(found.ranks), *found.places))
    return [code(found.leaf), text(place), text(found.reason), link, text(found.expires), code(found.observed)]


def policy(report: Report) -> Html:
    """What the change under test alters in the policy, which its own check does not follow."""
    if not report.policy_changes:
        return NOTHING
    said = "The change alters the policy. This check used the base revision's; what follows has no effect on it."
    rows = [[code(row.key), _fact(row.before), _fact(row.after)] for row in report.policy_changes[:_MOST]]
    shown = table([text(word) for word in ("key", "base", "change")], rows, f"Base revision {report.base or 'unknown'}")
    return section("policy", "Policy changed here", tag("p", text(said), class_="note"), shown)


def environment(rows: Sequence[EnvironmentDifferenceRow], compared: bool) -> Html:
    """What is not as it was; ``compared`` is whether there was anything to compare with."""
    if not rows:
        equal = tag("p", text("Nothing differs: the environment is the golden's own."))
        return section("environment", "Environment difference", equal) if compared else NOTHING
    header = [text(word) for word in ("fact", "kind", "expected", "observed", "can change bits", "seen by")]
    cells = [
        [code(row.name), text(row.kind), _fact(row.expected), _fact(row.observed),
         tag("b", text("yes")) if row.can_change_bits else text("no"), text(row.origin)]
        for row in rows[:_MOST]
    ]  # fmt: skip
    return section("environment", "Environment difference", table(header, cells, "What can change bits comes first"))


def _fact(value: str | None) -> Html:
    return text("absent") if value is None else code(value)


def records(report: Report) -> Html:
    """What else the report holds: golden, launches, steps, environment."""
    parts = [
        _pairs("The golden's record", report.golden or {}),
        _pairs("The record of the new golden, which travels with the change", report.new_golden or {}),
        _launches(report.launches),
        _steps(report.steps),
        _environment(report.environment),
        _listed("Not exercised: these groups never changed during the run", report.unexercised),
    ]
    return section("records", "Records", *parts)


def _launches(launches: Sequence[LaunchRow]) -> Html:
    if not launches:
        return NOTHING
    header = [text(word) for word in ("launch", "purpose", "steps", "ended", "took", "log")]
    rows = [
        [text(each.name), text(each.purpose), text(each.steps), text(each.ended),
         text(seconds_in_words(each.seconds)), code(each.log)]
        for each in launches[:_MOST]
    ]  # fmt: skip
    return details(text(f"Launches ({len(launches)})"), table(header, rows, "Every launch of the check"), open=True)


def _steps(steps: Sequence[StepRow]) -> Html:
    names = list(dict.fromkeys(name for step in steps for name in step.metrics))
    if not names:
        return NOTHING
    shown = steps[:_MOST] if len(names) * len(steps) < 20_000 else steps[:40]
    rows = [[text(step.step), *(code(step.metrics.get(name, "")) for name in names)] for step in shown]
    caption = f"Metrics of the reference launch: {len(shown)} of {len(steps)} steps"
    header = [text("step"), *map(text, names)]
    return details(text(f"Steps of the reference launch ({len(steps)})"), table(header, rows, caption))


def _environment(facts: Mapping[str, object]) -> Html:
    rows = [[code(name), code(value)] for name, value in _flat(facts)]
    if not rows:
        return NOTHING
    shown = table((text("fact"), text("value")), rows[:2000], "The environment under test")
    return details(text(f"Environment under test ({len(rows)} facts)"), shown)


def _flat(value: object, prefix: str = "") -> Iterable[tuple[str, str]]:
    """Leaves of nested mappings and lists, their keys joined by dots."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)) and any(isinstance(item, Mapping) for item in value):
        for item in value:
            named = isinstance(item, Mapping) and "name" in item
            yield from _flat(item, f"{prefix}.{item['name']}" if named else prefix)
    else:
        yield prefix, str(value)


def _pairs(title: str, values: Mapping[str, object]) -> Html:
    if not values:
        return NOTHING
    rows = [[text(name), code(value)] for name, value in _flat(values)]
    return details(text(title), table((text("key"), text("value")), rows, title), open=True)


def _listed(title: str, items: Sequence[str]) -> Html:
    if not items:
        return NOTHING
    return join([tag("h3", text(title)), tag("ul", *(tag("li", code(item)) for item in items[:_MOST]))])
