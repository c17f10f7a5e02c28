"""A measurement for a person at a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from validator.overhead.gate import disturbances
from validator.overhead.words import bytes_in_words, interval_in_words, percent, seconds
from validator.report.text import printable

_OPERATORS = 8
_NAME = 56


def render_terminal(record: Mapping[str, Any]) -> str:
    """The answer first, then both arms, then where the time goes; ends in a line feed."""
    return "\n".join(_lines(record)) + "\n"


def _lines(record: Mapping[str, Any]) -> Iterator[str]:
    names = {"holds": "WITHIN BUDGET", "fails": "OVER BUDGET", "inconclusive": "INCONCLUSIVE"}
    mode = record["mode"]
    title = {"quick": "FIRST LOOK", "noise": "NOISE FLOOR"}.get(mode) or names[record["decision"]]
    yield f"{title}  {record['sentence']}"
    found = record["overhead"]
    yield f"pipeline {record['pipeline']}, hardware class {record['hardware_class']}, {record['seconds']:.0f} s"
    for stamp in record["stamps"]:
        yield f"stamped {stamp}: this measurement is not published"
    yield ""
    yield from _arms(record)
    yield ""
    if mode == "full":
        look, looks = record["looks"].index(found["pairs"]) + 1, len(record["looks"])
        level = f"{100 * found['look_level']:.2f} %"
        yield f"Look {look} of {looks}: Student's {level} interval, which is one of 95 % over all looks together"
    for other in record["further"]:
        words = f"{percent(other['estimate'])} ({interval_in_words(other)})"
        yield f"{other['arm']} over {other['over']}: {words}"
    if mode != "noise":
        yield f"Noise of these pairs: overheads from {percent(record['noise_floor']['here'])} on can be told from none"
    yield from (f"Note: {line}" for line in disturbances(record))
    if record["breakdown"]:
        yield ""
        yield from _breakdown(record["breakdown"])


def _arms(record: Mapping[str, Any]) -> Iterator[str]:
    width = max(len(arm["name"]) for arm in record["arms"])
    yield f"{'arm':<{width}}  {'step':>9}  {'5 %':>9}  {'95 %':>9}  {'tokens/s':>10}  {'memory':>8}  launches"
    for arm in record["arms"]:
        step = arm["step_seconds"]
        times = "  ".join(f"{seconds(step[key]):>9}" for key in ("median", "p5", "p95"))
        memory = bytes_in_words(arm["peak_memory_bytes"])
        rate = f"{arm['tokens_per_second']:>10.0f}"
        yield f"{arm['name']:<{width}}  {times}  {rate}  {memory:>8}  {len(arm['launches'])}"


def _breakdown(shown: Mapping[str, Any]) -> Iterator[str]:
    arms = list(shown["phases"][0]["seconds"])
    yield "Where a step's time goes (profiled launches; communication includes waiting for the other ranks)"
    yield from _table("phase", shown["phases"], arms, len("communication"))
    yield ""
    yield "Operators whose own time differs most"
    width = max(len(_name(row)) for row in shown["operators"][:_OPERATORS]) if shown["operators"] else 0
    yield from _table("operator", shown["operators"][:_OPERATORS], arms, width)


def _table(head: str, rows: Any, arms: list[str], width: int) -> Iterator[str]:
    columns = [max(len(arm), 9) for arm in arms]
    heads = "  ".join(f"{arm:>{size}}" for arm, size in zip(arms, columns, strict=True))
    yield f"  {head:<{width}}  {heads}  {'difference':>10}"
    for row in rows:
        cells = "  ".join(f"{seconds(row['seconds'][arm]):>{size}}" for arm, size in zip(arms, columns, strict=True))
        sign = "+" if row["difference"] >= 0 else "-"
        yield f"  {_name(row):<{width}}  {cells}  {sign + seconds(abs(row['difference'])):>10}"


def _name(row: Mapping[str, Any]) -> str:
    return printable(row["name"][:_NAME])[:_NAME]
