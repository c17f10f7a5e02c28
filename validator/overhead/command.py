"""``validator overhead``, and the overhead gate of ``validator check``: from an order to a record."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from validator.check.launches import Launches
from validator.check.out import write_whole
from validator.overhead.bench import Bench
from validator.overhead.floor import floor_file, keep_floor, known_floor, refuse_budget_below
from validator.overhead.gate import overhead_gate
from validator.overhead.measurement import Mode, make_plan, measure
from validator.overhead.record import document, render
from validator.report.model import GateReport

#: Exit status of the command by decision.
EXIT_CODES = {"holds": 0, "fails": 1, "inconclusive": 4}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants measured."""

    mode: Mode = Mode.FULL
    without_fill: bool = False
    breakdown: bool = True


@dataclass(frozen=True, slots=True)
class Measured:
    """A finished measurement; ``remarks`` are sentences about files that were left out."""

    record: Mapping[str, Any]
    remarks: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """That of the decision; a first look and a noise measurement decide nothing."""
        return EXIT_CODES[self.record["decision"]] if self.record["mode"] == Mode.FULL else 0


def run(launches: Launches, changes: Mapping[str, str], wish: Wish, out: Path) -> Measured:
    """Measure as wished and leave ``overhead.json`` in ``out``.

    Raises ``UsageError`` for a budget below the noise floor: before anything is launched where a floor is known, and
    after a noise measurement that finds one. Raises ``LaunchError`` where a launch fails.
    """
    pipeline = launches.pipeline
    file = floor_file(pipeline.name, launches.hardware_class)
    known, remark = known_floor(file)
    if known is not None and wish.mode is Mode.FULL:
        refuse_budget_below(known["noise_floor"]["here"], pipeline, known["started"])
    policy = pipeline.policy.overhead
    plan = make_plan(pipeline.computation, policy, wish.mode, without_fill=wish.without_fill, breakdown=wish.breakdown)
    now, clock = datetime.now(UTC), time.monotonic()
    bench = Bench(launches, policy, changes)
    try:
        measurement = measure(bench, plan)
    finally:
        launches.rows.extend(bench.rows)
    record = document(
        measurement, pipeline=pipeline.name, hardware_class=launches.hardware_class,
        computation=pipeline.computation.digest, started=now.isoformat(timespec="seconds"),
        seconds=time.monotonic() - clock, stamps=launches.stamps,
        noise=known["noise_floor"]["here"] if known is not None else None,
    )  # fmt: skip
    write_whole(out / "overhead.json", render(record))
    if wish.mode is Mode.NOISE and not launches.stamps:
        keep_floor(file, record)
    return Measured(record, (remark,) if remark else ())


def judge(launches: Launches, changes: Mapping[str, str], out: Path, *, required: bool) -> tuple[GateReport, Any]:
    """The overhead gate of a check, and the record behind it."""
    measured = run(launches, changes, Wish(), out)
    return overhead_gate(measured.record, required=required), measured.record
