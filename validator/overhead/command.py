"""``validator overhead``, and the overhead gate of ``validator check``: from an order to a record."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from validator.check.launches import Launches
from validator.check.order import MeasureOverhead
from validator.check.out import write_whole
from validator.errors import UsageError
from validator.overhead.bench import Bench
from validator.overhead.floor import floor_file, keep_floor, known_floor, refuse_budget_below
from validator.overhead.gate import overhead_gate
from validator.overhead.measurement import Mode, make_plan, measure
from validator.overhead.page import render_page
from validator.overhead.record import document, render
from validator.overhead.terminal import render_terminal
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
    floor, remark = _refuse_known_noise(launches) if wish.mode is Mode.FULL else (None, "")
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
        noise=floor,
    )  # fmt: skip
    write_whole(out / "overhead.json", render(record))
    if wish.mode is Mode.NOISE and not launches.stamps:
        keep_floor(floor_file(pipeline.name, launches.hardware_class), record)
    return Measured(record, (remark,) if remark else ())


def wish_of(options: argparse.Namespace) -> Wish:
    """The wish behind a command line. Raises ``UsageError`` for options that do not go together."""
    if options.quick and options.noise:
        raise UsageError("--quick and --noise do not go together; a noise floor takes all pairs: leave out --quick.")
    if options.noise and options.without_fill:
        raise UsageError("--noise and --without-fill do not go together; leave one out.")
    mode = Mode.QUICK if options.quick else Mode.NOISE if options.noise else Mode.FULL
    return Wish(mode, options.without_fill, not options.no_breakdown)


def measure_and_show(
    launches: Launches, changes: Mapping[str, str], wish: Wish, out: Path, json: str | None, html: str | None
) -> int:
    """Carry out the command; returns its exit code. Raises what ``run`` raises."""
    measured = run(launches, changes, wish, out)
    sys.stdout.write(render_terminal(measured.record))
    for remark in measured.remarks:
        print(f"validator: {remark}", file=sys.stderr)
    print(f"Output   {out}")
    if json is not None:
        write_whole(Path(json), render(measured.record))
    if html is not None:
        write_whole(Path(html), render_page(measured.record))
    if wish.mode is Mode.NOISE:
        refuse_budget_below(measured.record["noise_floor"]["here"], launches.pipeline, measured.record["started"])
    return measured.exit_code


def gate_of(launches: Launches) -> MeasureOverhead:
    """The overhead gate of a check. Raises ``UsageError`` at once for a budget below the known noise floor."""
    _refuse_known_noise(launches)

    def judge(
        launches: Launches, changes: Mapping[str, str], out: Path, required: bool
    ) -> tuple[GateReport, Mapping[str, object]]:
        record = run(launches, changes, Wish(), out).record
        return overhead_gate(record, required=required), record

    return judge


def _refuse_known_noise(launches: Launches) -> tuple[float | None, str]:
    """The known noise floor, ``None`` without one, and a remark on a record of it that cannot be used."""
    file = floor_file(launches.pipeline.name, launches.hardware_class)
    known, remark = known_floor(file, launches.pipeline.computation.digest)
    if known is None:
        return None, remark
    floor: float = known["noise_floor"]["here"]
    refuse_budget_below(floor, launches.pipeline, known["started"])
    return floor, remark
