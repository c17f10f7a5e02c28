"""What determinism costs, from the measurement's record: the interval beside the budget, both arms, where time goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from validator.report.html.elements import NOTHING, Html, code, section, table, tag, text

_WIDTH, _LEFT, _RIGHT, _HEIGHT = 640.0, 20.0, 20.0, 92.0


def overhead(record: Mapping[str, Any] | None) -> Html:
    """The section; empty without a record. A record that is not as its schema says is named, and the page goes on."""
    if record is None:
        return NOTHING
    try:
        parts = list(_parts(record))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ZeroDivisionError) as error:
        parts = [
            tag("p", text(f"The overhead's record cannot be shown ({error!r}); see the JSON report."), class_="note")
        ]
    return section("overhead", "What determinism costs", *parts)


def _parts(record: Mapping[str, Any]) -> Iterator[Html]:
    yield tag("p", text(record["sentence"]), class_="sentence")
    yield _interval(record["overhead"], float(record["budget"]))
    header = [text(word) for word in ("arm", "purpose", "median step", "5 % to 95 %", "tokens/s", "peak memory a rank")]
    yield table(header, [_arm(arm) for arm in record["arms"]], "Both arms, each in launches of its own")
    breakdown = record.get("breakdown")
    if breakdown:
        for kind, rows in (("phase", breakdown["phases"]), ("operator", breakdown["operators"])):
            if rows:
                yield _rows(kind, rows)


def _interval(found: Mapping[str, Any], budget: float) -> Html:
    """Estimate, 95 % interval and budget on one axis that begins at no cost at all."""
    estimate = float(found["estimate"])
    lower, upper = float(found["interval"]["lower"]), float(found["interval"]["upper"])
    low, high = min(0.0, lower), max(budget, upper, estimate, 1e-6)
    margin = (high - low) * 0.08

    def x(value: float) -> str:
        share = (value - low + margin) / (high - low + 2 * margin)
        return f"{_LEFT + share * (_WIDTH - _LEFT - _RIGHT):.1f}"

    def word(value: float, y: int, content: str) -> Html:
        anchor = (
            "end" if value > low + (high - low) * 0.7 else "start" if value < low + (high - low) * 0.3 else "middle"
        )
        return tag("text", text(content), x=x(value), y=y, text_anchor=anchor, class_="label")

    marks = (
        tag("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=66, y2=66, class_="grid"),
        tag("line", x1=x(0.0), x2=x(0.0), y1=24, y2=72, class_="grid"),
        word(0.0, 86, "0"),
        tag("line", x1=x(budget), x2=x(budget), y1=24, y2=72, class_="budget"),
        word(budget, 86, f"budget {_percent(budget)}"),
        tag("line", x1=x(lower), x2=x(upper), y1=46, y2=46, class_="interval"),
        tag("circle", cx=x(estimate), cy=46, r=6, class_="dot observed"),
        word(estimate, 16, f"{_percent(estimate)}, 95 % interval {_percent(lower)} to {_percent(upper)}"),
    )
    label = (
        f"Overhead {_percent(estimate)}, 95 % interval {_percent(lower)} to {_percent(upper)}, "
        f"{found['pairs']} pairs, budget {_percent(budget)}"
    )
    return tag("svg", *marks, viewBox=f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}", role="img", aria_label=label, class_="cost")


def _arm(arm: Mapping[str, Any]) -> list[Html]:
    step = arm["step_seconds"]
    return [
        text(arm["name"]),
        text(arm["purpose"]),
        text(_seconds(step["median"])),
        text(f"{_seconds(step['p5'])} to {_seconds(step['p95'])}"),
        text(f"{arm['tokens_per_second']:,.0f}"),
        text(f"{arm['peak_memory_bytes'] / 2**20:,.0f} MiB"),
    ]


def _rows(kind: str, rows: Sequence[Mapping[str, Any]]) -> Html:
    arms = list(rows[0]["seconds"])
    cells = [
        [
            code(row["name"]) if kind == "operator" else text(row["name"]),
            *(text(_seconds(row["seconds"].get(arm, 0.0))) for arm in arms),
            text(f"{'−' if row['difference'] < 0 else '+'}{_seconds(abs(row['difference']))}"),
        ]
        for row in rows
    ]
    caption = "Where the time goes, by phase" if kind == "phase" else "Operators whose own time differs most"
    return table([text(word) for word in (kind, *arms, "difference")], cells, caption)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.{2 if abs(fraction) < 0.01 else 1}f} %"


def _seconds(value: float) -> str:
    return f"{value:.3f} s" if value >= 1 else f"{1000 * value:.1f} ms"
