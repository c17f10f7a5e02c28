"""Pictures of a measurement as SVG: pairs with their interval and budget, step times by launch, phases by arm."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from validator.overhead.words import percent, seconds
from validator.report.html.elements import Html, tag, text

_WIDTH, _LEFT, _RIGHT = 720.0, 130.0, 24.0
_ROW = 22.0

#: Colours of arms, of the style sheet that report pages share.
_TONES = ("var(--observed)", "var(--expected)", "var(--bar)")


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from ``low`` to ``high`` along the width of a picture."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Sequence[float], *, zero: bool = False) -> Scale:
        """Room for all ``values``, and for zero where it is wanted."""
        low, high = min(values), max(values)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        margin = 0.06 * (high - low or abs(high) or 1.0)
        return cls(low - (0.0 if zero and low == 0 else margin), high + margin)

    def at(self, value: float) -> float:
        """Horizontal position in pixels."""
        share = (value - self.low) / (self.high - self.low)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 2)

    def ticks(self, count: int = 6) -> list[float]:
        """Round values within the scale, about ``count`` of them."""
        rough = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough)
        first = math.ceil(self.low / step)
        return [index * step for index in range(first, math.floor(self.high / step) + 1)]


def pairs_chart(record: Mapping[str, Any]) -> Html:
    """A dot for each pair's overhead, the interval below, and the budget's line."""
    found = record["overhead"]
    values = [math.expm1(pair["log_ratio"]) for pair in record["pairs"]]
    budget = [] if record["mode"] == "noise" else [record["budget"]]
    bounds = [found["interval"][side] for side in ("lower", "upper")]
    scale = Scale.around([*values, *bounds, *budget, 0.0])
    parts: list[Html] = []
    for index, value in enumerate(values):
        parts += [_label(index, f"pair {index + 1}"), _dot(scale.at(value), _middle(index), _TONES[0], percent(value))]
    parts += _bar(scale, len(values), found, "95 % interval")
    rows = len(values) + 1
    for value in budget:
        parts += _rule(scale, value, rows, f"budget {percent(value)}")
    return _picture(scale, rows, parts, _tick, "Overhead of each pair, its interval and the budget")


def steps_chart(record: Mapping[str, Any]) -> Html:
    """Every counted step of every launch, and each launch's median as a line."""
    launches = [(index, arm, launch) for index, arm in enumerate(record["arms"]) for launch in arm["launches"]]
    scale = Scale.around([step for _, _, launch in launches for step in launch["steps"]])
    parts: list[Html] = []
    numbers = dict.fromkeys((arm["name"] for arm in record["arms"]), 0)
    for row, (index, arm, launch) in enumerate(launches):
        numbers[arm["name"]] += 1
        parts.append(_label(row, f"{_short(arm['name'])} {numbers[arm['name']]}"))
        parts += [_dot(scale.at(step), _middle(row), _TONES[index], seconds(step), 2.6) for step in launch["steps"]]
        x, y = scale.at(launch["median"]), _middle(row)
        parts.append(_line(x, y - 8, x, y + 8, "var(--text)", 2))
    return _picture(scale, len(launches), parts, seconds, "Step times by launch; the line is a launch's median")


def phases_chart(record: Mapping[str, Any]) -> Html:
    """Seconds of a step in each phase, one bar an arm."""
    rows = record["breakdown"]["phases"]
    arms = list(rows[0]["seconds"])
    scale = Scale.around([value for row in rows for value in row["seconds"].values()], zero=True)
    parts: list[Html] = []
    for number, row in enumerate(rows):
        parts.append(_label(number * len(arms) + (len(arms) - 1) / 2, row["name"]))
        for index, arm in enumerate(arms):
            y = _middle(number * len(arms) + index)
            value = row["seconds"][arm]
            title = tag("title", text(f"{arm}, {row['name']}: {seconds(value)}"))
            width = max(1.0, scale.at(value) - scale.at(0.0))
            parts.append(
                tag("rect", title, x=scale.at(0.0), y=y - 8, width=round(width, 2), height=16, fill=_TONES[index])
            )
    return _picture(scale, len(rows) * len(arms), parts, seconds, "Time of a step by phase and arm")


def legend(record: Mapping[str, Any]) -> Html:
    """Which colour is which arm."""
    pieces = []
    for index, arm in enumerate(record["arms"]):
        swatch = tag("span", text("■ "), style=f"color:{_TONES[index]}")
        pieces.append(tag("span", swatch, text(f"{arm['name']} ({arm['purpose']})  ")))
    return tag("p", *pieces)


def _picture(scale: Scale, rows: int, parts: Sequence[Html], words: Any, name: str) -> Html:
    height = rows * _ROW + 34
    axis: list[Html] = []
    for tick in scale.ticks():
        x = scale.at(tick)
        axis.append(_line(x, 4, x, rows * _ROW + 8, "var(--line)", 1))
        axis.append(_text(x, rows * _ROW + 24, words(tick), "middle"))
    return tag(
        "svg", tag("title", text(name)), *axis, *parts, viewBox=f"0 0 {_WIDTH:g} {height:g}", role="img",
        style="width:100%;max-width:60rem;height:auto;font-size:12px", aria_label=name,
    )  # fmt: skip


def _bar(scale: Scale, row: int, found: Mapping[str, Any], name: str) -> Iterator[Html]:
    interval = found["interval"]
    low, high, y = scale.at(interval["lower"]), scale.at(interval["upper"]), _middle(row)
    yield _label(row, name)
    yield _line(low, y, high, y, "var(--bar)", 3)
    yield from (_line(x, y - 5, x, y + 5, "var(--bar)", 2) for x in (low, high))
    bounds = f"{percent(interval['lower'])} to {percent(interval['upper'])}"
    yield _dot(scale.at(found["estimate"]), y, "var(--bar)", f"{percent(found['estimate'])}, {bounds}")


def _rule(scale: Scale, value: float, rows: int, name: str) -> Iterator[Html]:
    x = scale.at(value)
    yield _line(x, 4, x, rows * _ROW + 8, "var(--bad)", 2)
    left = x > _WIDTH / 2
    yield _text(x + (-5 if left else 5), 14, name, "end" if left else "start")


def _tick(fraction: float) -> str:
    return f"{100 * fraction:.4g} %"


def _middle(row: float) -> float:
    return 4 + _ROW * (row + 0.5)


def _label(row: float, words: str) -> Html:
    return _text(_LEFT - 10, _middle(row) + 4, words, "end")


def _text(x: float, y: float, words: str, anchor: str) -> Html:
    return tag("text", text(words), x=x, y=y, text_anchor=anchor, fill="var(--text)")


def _line(x1: float, y1: float, x2: float, y2: float, stroke: str, width: float) -> Html:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width)


def _dot(x: float, y: float, fill: str, words: str, radius: float = 4) -> Html:
    return tag("circle", tag("title", text(words)), cx=x, cy=y, r=radius, fill=fill, fill_opacity="0.8")


def _short(name: str) -> str:
    return name if len(name) <= 15 else f"{name[:14]}…"
