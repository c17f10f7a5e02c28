"""The resume chain as a timeline: the uninterrupted launch above, each segment below from its restore to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from validator.report.html.elements import Html, join, tag, text
from validator.report.html.map import Column, Map
from validator.report.html.states import State
from validator.report.html.words import CLASSES, STATES
from validator.report.words import moment_in_words

_WIDTH, _LEFT, _RIGHT = 720, 92, 16
_LANE, _BAR, _TOP = 44, 16, 34


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring moments of one segment: the steps that they cover and the worst that they hold.

    ``column`` is the first one's place in the map.
    """

    first: str
    last: str
    state: State
    column: int

    @property
    def steps(self) -> tuple[int, int]:
        """First and last step."""
        return int(self.first.partition(":")[2]), int(self.last.partition(":")[2])

    @property
    def trained(self) -> bool:
        """Whether this is training, and not the moment of a restore."""
        return self.first.startswith("step:")


@dataclass(frozen=True, slots=True)
class Lane:
    """One segment of the chain, as a row of the timeline."""

    name: str
    stretches: tuple[Stretch, ...]

    @property
    def restore(self) -> int:
        """The step that it begins after; 0 for a fresh start."""
        return self.stretches[0].steps[0] if not self.stretches[0].trained else self.stretches[0].steps[0] - 1

    @property
    def last(self) -> int:
        """The last step that it has."""
        return self.stretches[-1].steps[1]


def lanes(chain: Map) -> tuple[Lane, ...]:
    """The segments of the chain, from its map."""
    numbered = [(column, _stretch(chain, at, column)) for at, column in enumerate(chain.columns)]
    return tuple(
        Lane(name, tuple(stretch for _, stretch in members))
        for name, members in groupby(numbered, key=lambda each: each[0].strip)
    )


def timeline(chain: Map, last: int) -> Html:
    """The drawing; ``last`` is the uninterrupted launch's last step."""
    rows = lanes(chain)
    last = max([last, *(lane.last for lane in rows)])
    height = _TOP + _LANE * (len(rows) + 1) + 6

    def x(step: float) -> float:
        return _LEFT + step / max(1, last) * (_WIDTH - _LEFT - _RIGHT)

    marks = [_word(x(step), 14, f"step {step}" if step == 0 else str(step), "middle") for step in _ticks(rows, last)]
    marks += [
        tag("line", x1=f"{x(step):.1f}", x2=f"{x(step):.1f}", y1=20, y2=height, class_="grid")
        for step in _ticks(rows, last)
    ]
    marks.append(_word(4, _TOP + _BAR - 3, "reference", "start"))
    marks.append(_bar(x(0), x(last), _TOP, "reference", f"reference: steps 1 to {last}, uninterrupted"))
    for number, lane in enumerate(rows, start=1):
        top = _TOP + number * _LANE
        marks.append(_word(4, top + _BAR - 3, lane.name, "start"))
        if lane.restore:
            at = f"{x(lane.restore):.1f}"
            marks.append(tag("line", x1=at, x2=at, y1=top - _LANE + _BAR, y2=top, class_="restored"))
        for stretch in lane.stretches:
            if stretch.trained:
                first, final = stretch.steps
                marks.append(_bar(x(first - 1), x(final), top, CLASSES[stretch.state], _title(lane, stretch)))
        before = [stretch for stretch in lane.stretches if not stretch.trained]
        for offset, stretch in enumerate(before):
            title = tag("title", text(_title(lane, stretch)))
            # Right after the restore a diamond on the bar's begin; before the first step one below it.
            marks.append(tag("path", title, d=_diamond(x(lane.restore), top + 4 + 11 * offset),
                             class_=f"cell {CLASSES[stretch.state]}"))  # fmt: skip
    worst = max((stretch.state for lane in rows for stretch in lane.stretches), default=State.EQUAL)
    label = f"Resume chain of {len(rows)} launches over {last} steps; the worst that it holds is {STATES[worst]}."
    return tag("svg", *marks, viewBox=f"0 0 {_WIDTH} {height}", role="img", aria_label=label, class_="timeline")


def restores(chain: Map, opener: str) -> list[list[Html]]:
    """Rows of a table, one a segment: what it restored, and how it stands right after, before the first step, later.

    ``opener`` is the map's identity: what differs has a button that opens it there.
    """
    rows = []
    for lane in lanes(chain):
        at = {stretch.first.partition(":")[0]: stretch for stretch in lane.stretches if not stretch.trained}
        trained = [stretch for stretch in lane.stretches if stretch.trained]
        worst = max(trained, key=lambda stretch: stretch.state, default=None)
        begin = f"restores step {lane.restore}" if lane.restore else "starts fresh"
        rows.append(
            [text(lane.name), text(begin), *(_verdict(each, opener) for each in (at.get("setup"), at.get("entry"))),
             _verdict(worst, opener), text(f"{lane.restore + 1} to {lane.last}" if trained else "none")]
        )  # fmt: skip
    return rows


def _verdict(stretch: Stretch | None, opener: str) -> Html:
    if stretch is None:
        return text("not recorded")
    mark = tag("span", text(STATES[stretch.state]), class_=f"mark {CLASSES[stretch.state]}")
    if stretch.state not in {State.DIFFERENT, State.WAIVED}:
        return mark
    where = moment_in_words(stretch.first)
    button = tag("button", text(where), type="button", class_="open", data_map=opener, data_column=stretch.column)
    return join([mark, button], " ")


def _stretch(chain: Map, at: int, column: Column) -> Stretch:
    return Stretch(column.first, column.last, State(int(chain.states[:, at].max())), at)


def _title(lane: Lane, stretch: Stretch) -> str:
    where = moment_in_words(stretch.first)
    if stretch.first != stretch.last:
        where += f" to {moment_in_words(stretch.last)}"
    return f"{lane.name}, {where}: {STATES[stretch.state]}"


def _ticks(rows: Sequence[Lane], last: int) -> list[int]:
    """Steps that are named on the axis: begin, end, restores; not so near one another that they overlap."""
    wanted = sorted({0, last, *(lane.restore for lane in rows), *(lane.last for lane in rows)})
    kept: list[int] = []
    for step in wanted:
        if not kept or (step - kept[-1]) / max(1, last) > 0.05:
            kept.append(step)
    if kept[-1] != last:
        kept[-1] = last
    return kept


def _bar(begin: float, end: float, top: float, kind: str, title: str) -> Html:
    shape = {"x": f"{begin:.1f}", "y": f"{top:.1f}", "width": f"{max(1.0, end - begin - 1):.1f}", "height": _BAR}
    return tag("rect", tag("title", text(title)), class_=f"cell {kind}", **shape)


def _diamond(x: float, y: float) -> str:
    return f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z"


def _word(x: float, y: float, content: str, anchor: str) -> Html:
    return tag("text", text(content), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_="label")
