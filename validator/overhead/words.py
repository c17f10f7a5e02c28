"""The words for a measurement, the same wherever it is shown. Pure; works on a record's plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def percent(fraction: float) -> str:
    """``12.3 %`` with one decimal, two below one per cent."""
    decimals = 2 if abs(fraction) < 0.01 else 1
    return f"{100 * fraction:.{decimals}f} %"


def interval_in_words(found: Mapping[str, Any], kind: str = "interval") -> str:
    """``1.2 % to 3.4 %``"""
    return f"{percent(found[kind]['lower'])} to {percent(found[kind]['upper'])}"


def seconds(value: float) -> str:
    """A step time: ``354.3 ms``, ``1.234 s``."""
    return f"{value:.3f} s" if value >= 1 else f"{1000 * value:.1f} ms"


def bytes_in_words(value: float) -> str:
    """``731 MiB``, ``12.3 GiB``."""
    return f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"


def sentence(record: Mapping[str, Any]) -> str:
    """What the measurement says, in one sentence that ends in a full stop."""
    found = record["overhead"]
    pairs, budget = found["pairs"], percent(record["budget"])
    measured = f"95 % interval {interval_in_words(found)}, {pairs} pairs"
    if record["mode"] == "noise":
        floor = percent(record["noise_floor"]["here"])
        about = f"Two equal arms differ by {percent(found['estimate'])} ({measured})"
        return f"{about}: overheads from {floor} on can be told from none here."
    about = f"Deterministic mode costs {percent(found['estimate'])} of step time ({measured})"
    if record["mode"] == "quick":
        return f"{about}: a first look, which decides nothing about the budget of {budget}."
    verdict = {
        "holds": f"below the budget of {budget}",
        "fails": f"above the budget of {budget}",
        "inconclusive": f"which straddles the budget of {budget} at the pair limit",
    }
    return f"{about}, {verdict[record['decision']]}."
