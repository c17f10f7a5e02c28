"""One metric as a drawing: both launches above, their distance in units in the last place below."""

from __future__ import annotations

import math
from collections.abc import Sequence

from validator.report.html.curves import Curve, Point, finite
from validator.report.html.elements import NOTHING, Html, join, tag, text

_WIDTH, _LEFT, _RIGHT = 600, 84, 12
_TOP, _HEIGHT, _GAP, _BELOW = 10, 120, 16, 54
_TOTAL = _TOP + _HEIGHT + _GAP + _BELOW + 24


def chart(curve: Curve, expected: str, observed: str) -> Html:
    """The drawing as SVG, coloured by the page's style sheet; its words stand in the label too."""
    values = [value for point in curve.points for value in (finite(point.expected), finite(point.observed))]
    known = [value for value in values if value is not None]
    if not known:
        return NOTHING
    low, high = min(known), max(known)
    if low == high:
        low, high = low - abs(low or 1) * 0.01, high + abs(high or 1) * 0.01
    scale = _Scale(curve.points[0].step, curve.points[-1].step, low, high)
    lines = [_line(curve.points, scale, "observed", [finite(point.observed) for point in curve.points])]
    if curve.compared:
        lines.insert(0, _line(curve.points, scale, "expected", [finite(point.expected) for point in curve.points]))
    label = f"{curve.title} by step: {observed}" + (f" and {expected}; {summary(curve)}" if curve.compared else "")
    height = _TOTAL if curve.compared else _TOP + _HEIGHT + 24
    axes = _axes(scale, low, high)
    distances = _distances(curve, scale) if curve.compared else NOTHING
    return tag(
        "svg", axes, *lines, distances, _steps(curve, scale, height - 6),
        viewBox=f"0 0 {_WIDTH} {height}", role="img", aria_label=label, class_="chart",
    )  # fmt: skip


def summary(curve: Curve) -> str:
    """Where the two part, and how far they get apart."""
    if not curve.compared:
        return f"{curve.steps} steps"
    first = curve.first
    if first is None:
        return f"equal bits at all {curve.steps} steps"
    farthest = max((point.ulps or 0 for point in curve.points), default=0)
    far = f", at most {farthest:,} ULP apart" if farthest else ""
    return f"differs from step {first.step} on{far}"


class _Scale:
    """From steps and values to places in the drawing."""

    def __init__(self, first: int, last: int, low: float, high: float) -> None:
        self._first, self._span = first, max(1, last - first)
        self._low, self._range = low, high - low

    def x(self, step: int) -> float:
        return _LEFT + (step - self._first) / self._span * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _TOP + _HEIGHT - (value - self._low) / self._range * _HEIGHT


def _line(points: Sequence[Point], scale: _Scale, kind: str, values: Sequence[float | None]) -> Html:
    """A line through the finite values, interrupted where there is none; a dot where one stands alone."""
    pieces: list[list[str]] = [[]]
    for point, value in zip(points, values, strict=True):
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append(f"{scale.x(point.step):.1f},{scale.y(value):.1f}")
    drawn = []
    for piece in pieces:
        if len(piece) == 1:
            x, _, y = piece[0].partition(",")
            drawn.append(tag("circle", cx=x, cy=y, r="2.5", class_=f"dot {kind}"))
        elif piece:
            drawn.append(tag("polyline", points=" ".join(piece), class_=f"line {kind}"))
    return join(drawn)


def _axes(scale: _Scale, low: float, high: float) -> Html:
    marks = []
    for value in (low, (low + high) / 2, high):
        y = f"{scale.y(value):.1f}"
        marks.append(tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, class_="grid"))
        marks.append(_word(_LEFT - 6, float(y) + 4, _decimal(value), "end"))
    return join(marks)


def _distances(curve: Curve, scale: _Scale) -> Html:
    """Bars of the distance on a logarithmic scale: 1 ULP is seen as well as a million."""
    top = _TOP + _HEIGHT + _GAP
    base = top + _BELOW
    most = max((point.ulps or 0 for point in curve.points), default=0)
    height = max(1.0, math.log2(1 + most))
    wide = max(1.0, min(10.0, (_WIDTH - _LEFT - _RIGHT) / max(1, len(curve.points)) * 0.7))
    parts = [
        tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=base, y2=base, class_="grid"),
        _word(_LEFT - 6, base + 3, "0", "end"),
        _word(_LEFT - 6, top + 10, f"{_short(most)} ULP" if most else "ULP", "end"),
    ]
    for point in curve.points:
        if not point.differs:
            continue
        ulps = point.ulps
        # What has no distance (NaN, absent, a whole number) is a bar of full height, hatched.
        tall = _BELOW if ulps is None else max(2.0, math.log2(1 + ulps) / height * _BELOW)
        kind = "bar" if ulps is not None else "bar undefined"
        x, y = f"{scale.x(point.step) - wide / 2:.1f}", f"{base - tall:.1f}"
        parts.append(tag("rect", x=x, y=y, width=f"{wide:.1f}", height=f"{tall:.1f}", class_=kind))
    return join(parts)


def _steps(curve: Curve, scale: _Scale, y: float) -> Html:
    first, last = curve.points[0].step, curve.points[-1].step
    middle = (first + last) // 2
    shown = sorted({first, middle, last})
    ends = {first: "start", last: "end"}
    return join(
        _word(scale.x(step), y, f"step {step}" if step == first else str(step), ends.get(step, "middle"))
        for step in shown
    )


def _word(x: float, y: float, content: str, anchor: str) -> Html:
    return tag("text", text(content), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, class_="label")


def _decimal(value: float) -> str:
    """Five digits, short enough for the axis."""
    return f"{value:.4e}" if value and not 1e-3 <= abs(value) < 1e5 else f"{value:.5g}"


def _short(number: int) -> str:
    for unit, name in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= unit:
            return f"{number / unit:.3g} {name}"
    return str(number)
