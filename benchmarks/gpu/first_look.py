"""A first look at what determinism costs: two pairs of launches, and where the time goes by phase and operator.

    python benchmarks/gpu/first_look.py [PIPELINE] --out FOLDER [--json FILE] [--seconds N]

As ``validator overhead --quick``, which has no breakdown. The record is written after the pairs, and again with the
breakdown; its two profiled launches are left out where, by the pace so far, they would not end within ``--seconds`` of
the start (by default what on_gpu.sh left). Two pairs decide nothing: the interval says how little they can tell.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from validator.check.order import Order
from validator.check.out import write_whole
from validator.check.prepare import prepare
from validator.errors import ValidatorError
from validator.execute.launch import Executor
from validator.execute.local import LocalExecutor
from validator.overhead.bench import Bench
from validator.overhead.measurement import Mode, make_plan, measure
from validator.overhead.record import document, render
from validator.overhead.terminal import render_terminal
from validator.pipeline import find_project, load_pipeline
from validator.report.progress import Progress, progress_for

#: Steps that count in a timed launch, after the policy's warm-up.
TIMED = 8

#: A profiled launch takes longer than a timed one: the profiler's own work.
SLOWER = 1.3


def records(order: Order, executor: Executor, progress: Progress, seconds: float) -> Iterator[Mapping[str, Any]]:
    """The record after the pairs, and again with the breakdown where there is time. Raises ``LaunchError``."""
    pipeline, began = order.pipeline, datetime.now(UTC)
    policy = replace(pipeline.policy.overhead, timed=min(TIMED, pipeline.policy.overhead.timed))
    launches, clock = prepare(order, executor, progress), time.monotonic()
    bench = Bench(launches, policy)
    measurement = measure(bench, make_plan(pipeline.computation, policy, Mode.QUICK))

    def record() -> Mapping[str, Any]:
        return document(
            measurement, pipeline=pipeline.name, hardware_class=launches.hardware_class,
            computation=pipeline.computation.digest, started=began.isoformat(timespec="seconds"),
            seconds=time.monotonic() - clock, stamps=launches.stamps,
        )  # fmt: skip

    yield record()
    arms, spent = measurement.plan.arms, time.monotonic() - clock
    needed = SLOWER * spent * len(arms) / len(bench.rows)
    if spent + needed > seconds:
        print(f"No breakdown: {seconds - spent:.0f} s are left, and it would take about {needed:.0f} s.")
        return
    profiles = tuple(bench.profile(arm, len(bench.rows) + len(arms)) for arm in arms)
    measurement = replace(measurement, plan=replace(measurement.plan, breakdown=True), profiles=profiles)
    yield record()


def main() -> int:
    """Measure, and print what is known last."""
    parser = argparse.ArgumentParser(description="A first look at what determinism costs.")
    parser.add_argument("pipeline", nargs="?", default="nemotron-h200")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--seconds", type=float, default=float(os.environ.get("SECONDS_LEFT", "inf")))
    options = parser.parse_args()
    try:
        root = find_project(Path.cwd())
        order = Order(load_pipeline(options.pipeline, root), options.out.resolve(), root / "golden")
        for record in records(order, LocalExecutor(), progress_for(sys.stderr), options.seconds):
            print(render_terminal(record), flush=True)
            if options.json is not None:
                write_whole(options.json, render(record))
    except ValidatorError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
