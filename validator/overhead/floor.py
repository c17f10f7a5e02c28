"""The noise floor that was last measured on this machine, kept for the next measurement to be refused by."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from validator.check.out import write_whole
from validator.errors import UsageError
from validator.overhead.record import RecordError, read_record, render
from validator.overhead.words import percent
from validator.pipeline import Pipeline


def floor_file(pipeline: str, hardware_class: str, caller: Mapping[str, str] = os.environ) -> Path:
    """Where the noise record of a pipeline is kept: in the user's cache, since it belongs to the machine."""
    cache = caller.get("XDG_CACHE_HOME") or Path(caller.get("HOME") or "~").expanduser() / ".cache"
    return Path(cache) / "megatron-change-validator" / "noise" / f"{pipeline}.{hardware_class}.json"


def keep_floor(file: Path, record: Mapping[str, Any]) -> None:
    """Keep a noise measurement. Raises ``LaunchError`` where it cannot be written."""
    write_whole(file, render(record))


def known_floor(file: Path, computation: str) -> tuple[dict[str, Any] | None, str]:
    """The kept noise record of ``computation`` (its digest), and a sentence where there is one that cannot be used;
    ``None`` without one.
    """
    if not file.exists():
        return None, ""
    try:
        found = read_record(file)
    except RecordError as error:
        return None, f"{error} It is left out; measure anew with validator overhead --noise."
    if found["mode"] != "noise":
        return None, f"{file} is no noise measurement; it is left out."
    if found["computation"] != computation:
        return None, f"{file} is of another computation; measure anew with validator overhead --noise."
    return found, ""


def refuse_budget_below(floor: float, pipeline: Pipeline, measured: str) -> None:
    """Raise ``UsageError`` where the budget cannot be told from noise. ``floor`` is a fraction; ``measured`` its
    date.
    """
    budget = pipeline.policy.overhead.budget
    if budget < floor:
        raise UsageError(
            f"{pipeline.file}: policy.overhead.budget is {percent(budget)}, below the noise floor of {percent(floor)} "
            f"that --noise measured on this machine on {measured[:10]}; accepted is a budget above it: raise it, or "
            "give policy.overhead.pairs more, or quieten the machine, and measure the noise anew with "
            "validator overhead --noise."
        )
