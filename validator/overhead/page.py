"""A measurement as one page of HTML, without script, in the style of the report page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from validator.overhead.charts import legend, pairs_chart, phases_chart, steps_chart
from validator.overhead.gate import disturbances
from validator.overhead.words import bytes_in_words, interval_in_words, percent, seconds
from validator.report.html.elements import NOTHING, Html, code, section, table, tag, text

#: Nothing is loaded from anywhere.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_BADGES = {
    "holds": ("good", "within budget"),
    "fails": ("bad", "over budget"),
    "inconclusive": ("open", "inconclusive"),
}


def render_page(record: Mapping[str, Any]) -> str:
    """The page as text that ends in a line feed."""
    style = files("validator.report.html").joinpath("page.css").read_text(encoding="utf-8")
    title = f"Overhead of {record['pipeline']}: {percent(record['overhead']['estimate'])}"
    head = tag(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("title", text(title)),
        Html(f"<style>{style}</style>"),
    )
    main = tag("main", _header(record), *_sections(record))
    return f"<!doctype html>\n{tag('html', head, tag('body', main), lang='en')}\n"


def _header(record: Mapping[str, Any]) -> Html:
    tone, words = _BADGES[record["decision"]]
    if record["mode"] != "full":
        tone, words = "idle", "first look" if record["mode"] == "quick" else "noise floor"
    started = record["started"].replace("T", " ").replace("+00:00", " UTC")
    facts = (
        ("pipeline", record["pipeline"]), ("hardware class", record["hardware_class"]), ("started", started),
        ("took", f"{record['seconds']:.0f} s"), ("budget", percent(record["budget"])),
        ("noise of these pairs", percent(record["noise_floor"]["here"])),
    )  # fmt: skip
    listed = tag("dl", *(piece for name, value in facts for piece in _fact(name, value)), class_="facts")
    stamps = [tag("p", text(f"Stamped {stamp}: not published."), class_="note") for stamp in record["stamps"]]
    heading = tag(
        "h1", tag("span", text(words), class_=f"badge {tone}"), text(f" {record['pipeline']}: what determinism costs")
    )
    return tag("header", heading, tag("p", text(record["sentence"]), class_="sentence"), listed, *stamps, class_=tone)


def _fact(name: str, value: str) -> tuple[Html, Html]:
    return tag("dt", text(name)), tag("dd", text(value))


def _sections(record: Mapping[str, Any]) -> Sequence[Html]:
    found = record["overhead"]
    level = f"{100 * found['look_level']:.2f} %"
    rule = (
        f"Looks were planned after {', '.join(map(str, record['looks']))} pairs. The one that decided takes Student's "
        f"{level} interval over its pairs, so that all looks together miss the truth at most once in twenty."
    )
    further = [
        tag("p", text(f"{item['arm']} over {item['over']}: {percent(item['estimate'])} ({interval_in_words(item)})"))
        for item in record["further"]
    ]
    notes = [tag("p", text(line), class_="note") for line in disturbances(record)]
    return (
        section("pairs", "Pairs", pairs_chart(record), tag("p", text(rule), class_="quiet"), *further),
        section("steps", "Step times", legend(record), steps_chart(record), _arms(record), *notes),
        section("breakdown", "Where the time goes", *_breakdown(record)) if record["breakdown"] else NOTHING,
    )


def _arms(record: Mapping[str, Any]) -> Html:
    header = ("arm", "median step", "5 %", "95 %", "tokens/s", "peak memory a rank", "launches", "kernels for")
    rows = []
    for arm in record["arms"]:
        step = arm["step_seconds"]
        cells = (
            arm["name"], seconds(step["median"]), seconds(step["p5"]), seconds(step["p95"]),
            f"{arm['tokens_per_second']:.0f}", bytes_in_words(arm["peak_memory_bytes"]), len(arm["launches"]),
            arm["torch"].get("cpu_capability", ""),
        )  # fmt: skip
        rows.append([text(cell) for cell in cells])
    return table([text(word) for word in header], rows, "Both arms")


def _breakdown(record: Mapping[str, Any]) -> Sequence[Html]:
    shown = record["breakdown"]
    about = "From launches of their own. Communication includes waiting for the other ranks."
    arms = list(shown["phases"][0]["seconds"])
    tables = []
    for kind, rows in (("phase", shown["phases"]), ("operator", shown["operators"])):
        cells = [
            [
                code(row["name"]) if kind == "operator" else text(row["name"]),
                *(text(seconds(row["seconds"][arm])) for arm in arms),
                text(f"{'+' if row['difference'] >= 0 else '−'}{seconds(abs(row['difference']))}"),
            ]
            for row in rows
        ]
        caption = "By phase" if kind == "phase" else "Operators whose own time differs most"
        tables.append(table([text(word) for word in (kind, *arms, "difference")], cells, caption))
    return (tag("p", text(about), class_="quiet"), phases_chart(record), *tables)
