"""A pipeline's overhead over its results, as an SVG that needs no script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 720, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 12, 30


@dataclass(frozen=True, slots=True)
class Point:
    """One measurement: overhead and its interval as fractions, and what it was of."""

    value: float
    low: float
    high: float
    label: str


def overhead_chart(points: Sequence[Point]) -> str:
    """The points, oldest first, with their intervals; empty where there are none."""
    if not points:
        return ""
    least = min(0.0, *(point.low for point in points))
    most = max(0.01, *(point.high for point in points))
    span = (most - least) or 1.0
    least, most = least - 0.05 * span, most + 0.05 * span

    def x(index: int) -> float:
        return _LEFT + (index + 0.5) * (_WIDTH - _LEFT - _RIGHT) / len(points)

    def y(value: float) -> float:
        return _TOP + (most - value) / (most - least) * (_HEIGHT - _TOP - _BOTTOM)

    lines = []
    for number in range(5):
        value = least + (most - least) * number / 4
        lines.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{100 * value:.1f} %</text>'
        )
    path = " ".join(f"{'L' if index else 'M'}{x(index):.1f} {y(point.value):.1f}" for index, point in enumerate(points))
    lines.append(f'<path class="line" d="{path}"/>')
    for index, point in enumerate(points):
        title = f"{point.label}: {100 * point.value:.2f} % ({100 * point.low:.2f} to {100 * point.high:.2f} %)"
        lines.append(
            f'<g><title>{escape(title)}</title><line class="interval" x1="{x(index):.1f}" x2="{x(index):.1f}" '
            f'y1="{y(point.low):.1f}" y2="{y(point.high):.1f}"/>'
            f'<circle cx="{x(index):.1f}" cy="{y(point.value):.1f}" r="3.5"/></g>'
        )
    lines.append(f'<text x="{_LEFT}" y="{_HEIGHT - 8}">oldest</text>')
    lines.append(f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 8}" text-anchor="end">newest</text>')
    about = f"Overhead of determinism, {len(points)} results, oldest first; the table below has the values."
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(about)}">'
        f"{''.join(lines)}</svg>"
    )
