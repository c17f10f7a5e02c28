"""Where in the code the bits part: the module, and what it was given and returned on both sides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from validator.report.html.elements import NOTHING, Html, code, details, join, section, table, tag, text
from validator.report.model import GateReport, Localisation, TracedPlace, TracedValue
from validator.report.text import counted
from validator.report.words import code_in_words, localisation_in_words, module_in_words, traced_place_in_words


def localisations(gates: Iterable[GateReport]) -> Html:
    """One part for each gate whose difference was looked for in the code."""
    parts = [part for gate in gates if gate.localisation is not None for part in _one(gate.name, gate.localisation)]
    return section("module", "Where in the code", *parts)


def _one(gate: str, found: Localisation) -> list[Html]:
    module, place = module_in_words(found), code_in_words(found)
    parts = []
    if module or place:
        named = [tag("b", code(module))] if module else []
        named += [code(place)] if place else []
        parts.append(tag("p", join(named, ", "), text(f" (gate {gate})"), class_="place"))
    parts.append(tag("p", text(localisation_in_words(found))))
    where = [("step", found.step), ("rank", found.rank), ("micro-batch", found.micro_batch), ("phase", found.phase)]
    facts = [(name, value) for name, value in where if value not in (None, "")]
    if facts:
        rows = (join([tag("dt", text(name)), tag("dd", text(value))]) for name, value in facts)
        parts.append(tag("dl", *rows, class_="facts"))
    parts += [_values("What it is given", found.inputs), _values("What it comes to", found.outputs)]
    parts.append(_following(found.following))
    return parts


def _values(title: str, values: Sequence[TracedValue]) -> Html:
    """Both sides of every value; those that agree are folded away."""
    if not values:
        return NOTHING
    differing = [value for value in values if value.expected != value.observed]
    equal = [value for value in values if value.expected == value.observed]
    header = [text(word) for word in ("value", "expected", "observed", "bits")]
    parts = [table(header, map(_row, differing), f"{title}: what differs")] if differing else []
    if equal:
        same = table(header, map(_row, equal), f"{title}: what is the same on both sides")
        parts.append(details(text(f"{title}: {counted(len(equal), 'value')} the same on both sides"), same))
    return join(parts)


def _row(value: TracedValue) -> list[Html]:
    sign = "equal" if value.expected == value.observed else "different"
    return [text(value.name), code(value.expected or "none"), code(value.observed or "none"), text(sign)]


def _following(places: Sequence[TracedPlace]) -> Html:
    if len(places) < 2:
        return NOTHING
    header = [text(word) for word in ("call", "phase", "micro-batch", "inputs", "outputs")]
    rows = [
        [code(traced_place_in_words(place)), text(place.phase),
         text("" if place.micro_batch is None else place.micro_batch),
         text("differ" if place.inputs_differ else "agree"), text("differ" if place.outputs_differ else "agree")]
        for place in places
    ]  # fmt: skip
    title = f"How it goes on: the first {len(places)} traced calls on this rank in which the sides differ"
    return details(text(title), table(header, rows, "In the order in which the calls came to their end"), open=True)
