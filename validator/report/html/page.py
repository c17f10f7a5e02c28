"""The page of a report, and that of two trajectories: which sections there are, and what each one shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from validator.comparison import MomentPair, resume_pairs
from validator.report.harmless import harmless
from validator.report.html import curveview, mapview, sections
from validator.report.html.curves import draw_curves
from validator.report.html.document import Page, document
from validator.report.html.elements import NOTHING, Html, copyable, details, section, table, tag, text
from validator.report.html.localisation import localisations
from validator.report.html.map import Map, draw_map
from validator.report.html.overhead import overhead
from validator.report.html.states import Strip, every_moment, unexercised
from validator.report.html.tensors import Shelf
from validator.report.html.timeline import restores, timeline
from validator.report.markdown import render_markdown
from validator.report.model import (
    Divergence,
    EnvironmentDifferenceRow,
    GateReport,
    Outcome,
    Report,
    SpreadRow,
    Verdict,
)
from validator.report.trajectories import Trajectories
from validator.trajectory.reader import Trajectory

#: Names of what is compared, as the page says them.
GOLDEN, REFERENCE = "golden", "reference"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two trajectories that ``validator compare`` laid side by side, and what it found.

    ``sentence`` is its answer; the names are what a person called the two.
    """

    expected: Trajectory
    observed: Trajectory
    expected_name: str
    observed_name: str
    equal: bool
    sentence: str
    divergence: Divergence | None = None
    spread: tuple[SpreadRow, ...] = ()
    environment_difference: tuple[EnvironmentDifferenceRow, ...] = ()


def render_report(
    report: Report,
    trajectories: Trajectories | None = None,
    *,
    problems: Sequence[str] = (),
) -> str:
    """One check's report as a whole HTML document that needs no other file and no network.

    ``trajectories`` are what is at hand of them: without any, the page shows what the report alone can tell.
    ``problems`` are sentences on what could not be opened. Raises ``TrajectoryError`` where a trajectory's file was
    damaged after it was opened.
    """
    report = harmless(report)
    given = trajectories if trajectories is not None else Trajectories()
    page = Page(f"{report.verdict.value}: {report.pipeline}", sections.headline(report))
    maps, refusals = _maps(report, given, page.shelf)
    page.maps = [drawn for drawn, _ in maps]
    targets = _targets(report.gates, {gate: drawn for drawn, gate in reversed(maps)})
    ordered = sorted(report.gates, key=lambda gate: _in_order(report).index(gate.name))
    page.add("gates", "Gates", sections.gates(report))
    page.add("divergence", "First divergence", sections.divergences(ordered, targets))
    page.add("module", "Where in the code", localisations(ordered))
    page.add("map", "Map", _map_section(page.maps, refusals, problems, given))
    page.add("curves", "Curves", _curves(report, given))
    page.add("resume", "Resume chain", _resume(page.maps, given))
    compared = report.golden is not None and given.reference is not None
    page.add("environment", "Environment", sections.environment(report.environment_difference, compared))
    page.add("overhead", "Overhead", overhead(report.overhead))
    page.add("waivers", "Waivers", sections.waivers(report))
    page.add("policy", "Policy", sections.policy(report))
    page.add("records", "Records", sections.records(report))
    markdown = copyable(render_markdown(report), "the report as Markdown")
    whole = details(text("Everything as Markdown, for a comment or a mail"), markdown)
    page.add("text", "As text", section("text", "As text", whole))
    return document(page)


def render_comparison(pair: Pair) -> str:
    """Two trajectories side by side as a whole HTML document, like that of a report."""
    shelf = Shelf()
    names = pair.expected_name, pair.observed_name
    strip = Strip(pair.observed_name, pair.expected, pair.observed, every_moment(pair.expected, pair.observed))
    still = unexercised(pair.expected)
    drawn = (
        None if strip.refusal else draw_map("pair", f"{names[1]} against {names[0]}", names[0], [strip], shelf, still)
    )
    tone, word = ("good", "equal") if pair.equal else ("bad", "different")
    header = tag(
        "header",
        tag("h1", tag("span", text(word), class_=f"badge {tone}"), text(f" {names[1]} against {names[0]}")),
        tag("p", text(pair.sentence), class_="sentence"),
        id="verdict", class_=tone,
    )  # fmt: skip
    page = Page(f"{word}: {names[1]} against {names[0]}", header, shelf=shelf)
    page.maps = [drawn] if drawn is not None else []
    gate = GateReport("comparison", Outcome.FAILS, True, "", divergence=pair.divergence, spread=pair.spread)
    targets = _targets([gate], {gate.name: drawn} if drawn is not None else {})
    page.add("divergence", "First divergence", sections.divergences([gate], targets))
    page.add("map", "Map", _map_section(page.maps, [strip.refusal] if strip.refusal else [], (), None))
    rank = pair.divergence.rank if pair.divergence is not None else None
    curves = curveview.view(draw_curves(pair.expected, pair.observed, rank), *names)
    page.add("curves", "Curves", section("curves", "Metrics, step by step", curves))
    page.add("environment", "Environment", sections.environment(pair.environment_difference, True))
    return document(page)


def _maps(report: Report, given: Trajectories, shelf: Shelf) -> tuple[list[tuple[Map, str]], list[str]]:
    """Every map that can be drawn, with the gate that it shows, the failing gate's first; and why others cannot."""
    reference = given.reference
    if reference is None:
        return [], []
    still = unexercised(reference)
    wanted: list[tuple[str, str, str, str, list[Strip]]] = []
    if given.golden is not None:
        strip = Strip(REFERENCE, given.golden, reference, every_moment(given.golden, reference))
        wanted.append(("golden", "golden", "Against the golden", "the golden", [strip]))
    if given.new_golden is not None:
        strip = Strip(REFERENCE, given.new_golden, reference, every_moment(given.new_golden, reference))
        wanted.append(("new-golden", "rebaseline", "Against the new golden", "the new golden", [strip]))
    for number, repeat in enumerate(given.repeats, start=1):
        strip = Strip(f"repeat {number}", reference, repeat, every_moment(reference, repeat))
        name = "Repeated" if len(given.repeats) == 1 else f"Repeated {number}"
        wanted.append((f"repeat-{number}", "repeatability", name, "the reference launch", [strip]))
    chain = [Strip(each.name, reference, each.trajectory, _pairs(reference, each.trajectory, each.restore))
             for each in given.segments]  # fmt: skip
    if chain:
        wanted.append(("resume", "resume", "Resumed", "the uninterrupted launch", chain))
    order = _in_order(report)
    wanted.sort(key=lambda each: order.index(each[1]) if each[1] in order else len(order))
    waived = {gate.name: gate.waived for gate in report.gates}
    maps: list[tuple[Map, str]] = []
    refusals = []
    for number, (identity, gate, title, expected, strips) in enumerate(wanted):
        refused = [strip.refusal for strip in strips if strip.refusal]
        refusals += refused
        whole, cells = shelf.share(len(wanted) - number)
        drawn = None
        if not refused:
            drawn = draw_map(identity, title, expected, strips, shelf, still, waived.get(gate, ()))
        shelf.give_back(whole, cells)
        if drawn is not None:
            maps.append((drawn, gate))
    return maps, refusals


def _in_order(report: Report) -> list[str]:
    """Names of gates: first the one behind the headline, then others that fail, then the rest."""
    first = {Verdict.NONDETERMINISTIC: "repeatability", Verdict.RESUME_BROKEN: "resume"}.get(report.verdict)
    by_weight = sorted(report.gates, key=lambda gate: (gate.name != first, gate.outcome is not Outcome.FAILS))
    return [gate.name for gate in by_weight]


def _targets(gates: Sequence[GateReport], maps: Mapping[str, Map]) -> dict[str, sections.Target]:
    """The cell of a gate's map at which its first divergence is seen, by the gate's name."""
    targets = {}
    for gate in gates:
        drawn, found = maps.get(gate.name), gate.divergence
        at = drawn.find(found.moment, found.group) if drawn is not None and found is not None else None
        if drawn is not None and at is not None:
            targets[gate.name] = (drawn.identity, *at)
    return targets


def _pairs(reference: Trajectory, segment: Trajectory, restore: int) -> tuple[MomentPair, ...]:
    return tuple(resume_pairs(reference, segment, restore))


def _map_section(
    maps: Sequence[Map], refusals: Sequence[str], problems: Sequence[str], given: Trajectories | None
) -> Html:
    said = [tag("p", text(sentence), class_="note") for sentence in (*problems, *refusals)]
    if not maps:
        if given is not None and given.reference is None:
            said.append(tag("p", text("No trajectory of a whole launch came with this report, so there is no map."),
                            class_="quiet"))  # fmt: skip
        elif given is not None and not refusals:
            said.append(tag("p", text("The reference launch was compared with nothing."), class_="quiet"))
        return section("map", "Map", *said)
    hint = "Rows open to ranks, cells to tensors. Arrow keys move, Enter opens, Escape returns. "
    hint += "↺ is right after a restore, ▸ before the first step after it."
    tabs = tag(
        "div",
        *(tag("button", text(drawn.title), type="button", role="tab", id=f"tab-{drawn.identity}",
              aria_controls=f"map-{drawn.identity}", aria_selected="true" if at == 0 else "false",
              tabindex="0" if at == 0 else "-1")
          for at, drawn in enumerate(maps)),
        role="tablist", aria_label="What is compared", class_="tabs",
    )  # fmt: skip
    panels = (
        tag("div", tag("h3", text(drawn.title)), mapview.view(drawn), id=f"map-{drawn.identity}", role="tabpanel",
            aria_labelledby=f"tab-{drawn.identity}", class_="tabpanel")
        for drawn in maps
    )  # fmt: skip
    parts = [mapview.legend(), tag("p", text(hint), class_="quiet screen"), tabs, *panels]
    return section("map", "Map", *said, *parts)


def _curves(report: Report, given: Trajectories) -> Html:
    if given.reference is None:
        return NOTHING
    expected, name = given.golden, "golden"
    observed, other = given.reference, "reference launch"
    failing = [gate.name for gate in report.gates if gate.outcome is Outcome.FAILS]
    if "repeatability" in failing and given.repeats:
        expected, name, observed, other = given.reference, "first launch", given.repeats[0], "second launch"
    if expected is not None and expected.ranks != observed.ranks:
        expected = None
    divergence = report.divergence
    rank = divergence.rank if divergence is not None else None
    curves = draw_curves(expected, observed, rank)
    return section("curves", "Metrics, step by step", curveview.view(curves, name, other)) if curves else NOTHING


def _resume(maps: Iterable[Map], given: Trajectories) -> Html:
    chain = next((drawn for drawn in maps if drawn.identity == "resume"), None)
    if chain is None or given.reference is None:
        return NOTHING
    last = max((moment.step for moment in given.reference.moments), default=0)
    words = ("launch", "begins", "right after the restore", "before the first step", "later steps", "steps")
    header = [text(word) for word in words]
    drawing = tag("div", timeline(chain, last), class_="scroll", tabindex="0", role="group", aria_label="Timeline")
    rows = table(header, restores(chain, "resume"), "Each launch of the chain against the uninterrupted one")
    return section("resume", "Resume chain", drawing, rows)
