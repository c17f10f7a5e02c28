"""The curves as figures of the page, each with its values as a table."""

from __future__ import annotations

from collections.abc import Sequence

from validator.report.html.chart import chart, summary
from validator.report.html.curves import Curve, Point
from validator.report.html.elements import NOTHING, Html, code, details, join, table, tag, text
from validator.trajectory.metrics import Metric

#: Curves that are drawn; of a launch with more, the rest opens.
_DRAWN = 6

#: Rows of one curve's table, and curves that have one at all.
_ROWS = 60


def view(curves: Sequence[Curve], expected: str, observed: str) -> Html:
    """All curves: those that differ or vary are drawn, constant ones are listed."""
    varied = [curve for curve in curves if not curve.constant]
    constant = [curve for curve in curves if curve.constant]
    shown, more = varied[:_DRAWN], varied[_DRAWN:]
    parts = [_legend(expected, observed, any(curve.compared for curve in curves)) if varied else NOTHING]
    parts.append(_figures(shown, expected, observed) if shown else NOTHING)
    if more:
        parts.append(details(text(f"{len(more)} more metrics"), _figures(more, expected, observed)))
    if constant:
        rows = [(text(curve.title), _value(curve.points[0].observed or curve.points[0].expected)) for curve in constant]
        caption = "Metrics that are the same at every step, on both sides"
        listed = table((text("metric"), text("value")), rows, caption)
        parts.append(details(text(f"{len(constant)} metrics that never change"), listed))
    return join(parts)


def _legend(expected: str, observed: str, compared: bool) -> Html:
    items = [tag("li", tag("span", class_="key observed"), text(observed))]
    if compared:
        items.insert(0, tag("li", tag("span", class_="key expected"), text(expected)))
        items.append(tag("li", tag("span", class_="key bar"), text("distance in ULPs, logarithmic")))
    return tag("ul", *items, class_="legend")


def _figures(curves: Sequence[Curve], expected: str, observed: str) -> Html:
    return tag("div", *(_figure(curve, expected, observed) for curve in curves), class_="figures")


def _figure(curve: Curve, expected: str, observed: str) -> Html:
    caption = tag("figcaption", tag("b", text(curve.title)), text(f" {summary(curve)}"))
    return tag("figure", caption, chart(curve, expected, observed), _values(curve, expected, observed))


def _values(curve: Curve, expected: str, observed: str) -> Html:
    """Exact values, from the first step that differs on where there are too many."""
    start = 0
    if len(curve.points) > _ROWS and curve.first is not None:
        start = max(0, curve.points.index(curve.first) - 2)
    points = curve.points[start : start + _ROWS]
    caption = f"{curve.title}, exact values"
    if len(points) < curve.steps:
        caption += f": {len(points)} of {curve.steps} steps"
    if curve.compared:
        header = (text("step"), text(expected), text("bits"), text(observed), text("bits"), text("ULPs"))
        rows = [_compared(point) for point in points]
    else:
        header = (text("step"), text(observed), text("bits"))  # type: ignore[assignment]
        rows = [[text(point.step), _value(point.observed), _bits(point.observed)] for point in points]
    return details(text("Exact values"), table(header, rows, caption))


def _compared(point: Point) -> list[Html]:
    ulps = "0" if not point.differs else "undefined" if point.ulps is None else f"{point.ulps:,}"
    sides = (point.expected, point.observed)
    cells = [cell for side in sides for cell in (_value(side), _bits(side))]
    return [text(point.step), *cells, tag("b", text(ulps)) if point.differs else text(ulps)]


def _value(metric: Metric | None) -> Html:
    return text("none") if metric is None else code(repr(metric.value))


def _bits(metric: Metric | None) -> Html:
    return NOTHING if metric is None else code(metric.bits)
