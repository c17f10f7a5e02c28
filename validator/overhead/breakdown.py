"""Where the difference goes: by phase and by operator, from the profiled launches. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from validator.errors import LaunchError
from validator.overhead.timings import LONGEST, number
from validator.report.text import brief

#: Phases of a step, in the order in which reports show them; ``other`` is the step's time in none of them.
PHASES = ("forward", "backward", "optimizer", "communication", "data", "other")

#: Operators that a record keeps: those whose time differs most between the arms.
MOST_OPERATORS = 15

Ranks = Sequence[Mapping[str, Any]]


def breakdown(profiles: Mapping[str, Ranks], warmup: int, clocked: int) -> dict[str, Any]:
    """Seconds a step by phase and by operator of every arm, ``profiles`` being by arm what each rank saw.

    The first two arms are compared: ``difference`` is that of the first over the second. A phase's time is the median
    over ``clocked`` steps after ``warmup`` ones, averaged over ranks; an operator's the mean over profiled steps and
    ranks, of its own time without the operators that it calls. Raises ``LaunchError`` for a profile that cannot be
    used.
    """
    try:
        phases = {arm: _phases(ranks, warmup, clocked) for arm, ranks in profiles.items()}
        operators = {arm: _operators(ranks) for arm, ranks in profiles.items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LaunchError(f"A profiled launch left a profile that cannot be used ({brief(repr(error))}).") from error
    first, second = list(profiles)[:2]
    names = {name for seconds in operators.values() for name in seconds}
    rows = [_row(name, {arm: operators[arm].get(name, 0.0) for arm in profiles}, first, second) for name in names]
    rows.sort(key=lambda row: (-abs(row["difference"]), row["name"]))
    return {
        "phases": [_row(name, {arm: phases[arm][name] for arm in profiles}, first, second) for name in PHASES],
        "operators": rows[:MOST_OPERATORS],
    }


def _row(name: str, seconds: Mapping[str, float], first: str, second: str) -> dict[str, Any]:
    rounded = {arm: round(value, 7) for arm, value in seconds.items()}
    return {"name": name, "seconds": rounded, "difference": round(seconds[first] - seconds[second], 7)}


def _phases(ranks: Ranks, warmup: int, clocked: int) -> dict[str, float]:
    by_rank = []
    for rank in ranks:
        steps = rank["phases"][warmup : warmup + clocked]
        named = [name for name in PHASES if name != "other"]
        seconds = {name: statistics.median(_seconds(step.get(name, 0.0)) for step in steps) for name in named}
        whole = statistics.median(_seconds(step["step"]) for step in steps)
        seconds["other"] = max(0.0, whole - sum(seconds.values()))
        by_rank.append(seconds)
    return {name: statistics.fmean(seconds[name] for seconds in by_rank) for name in PHASES}


def _operators(ranks: Ranks) -> dict[str, float]:
    total: dict[str, float] = {}
    for rank in ranks:
        for told, figures in rank["operators"].items():
            name = brief(told)
            total[name] = total.get(name, 0.0) + _seconds(figures["seconds"]) / len(ranks)
    return total


def _seconds(value: object) -> float:
    return number(value, -LONGEST, LONGEST)
