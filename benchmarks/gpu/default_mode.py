"""Is the fastest default mode deterministic, and where does it begin not to be?

    python benchmarks/gpu/default_mode.py [PIPELINE] --out FOLDER [--json FILE]

The default arm of the pipeline's overhead (no deterministic mode, every kernel free) is launched twice with
fingerprints at every step and a module trace of step 1. Where the two part in step 1, the traces say in which module;
where they part later, more launches trace that step. Nothing recorded so can become a golden: the launches are stamped.

Exit status: 0 where a difference was seen and localised, 1 where it was seen and not localised, 4 where both launches
agreed in every bit, which says nothing about a third.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any, cast

from validator.check.gates import repeatability_gate
from validator.check.launches import Launches
from validator.check.order import Order, Parted
from validator.check.plan import LaunchPlan
from validator.check.prepare import prepare
from validator.diagnose.localise import localise
from validator.diagnose.relaunch import Relaunch
from validator.errors import LaunchError, ValidatorError
from validator.execute.launch import Executor, LaunchOutcome
from validator.execute.local import LocalExecutor
from validator.execute.request import LaunchRequest
from validator.overhead.arms import Arm, default_arm
from validator.pipeline import find_project, load_pipeline
from validator.report.model import GateReport, Localisation, LocalisationOutcome, Outcome
from validator.report.progress import Progress, progress_for
from validator.trajectory.groups import Moment

STAMP = "the default mode"

#: Outcomes of a localisation that say where it began.
_LOCALISED = {LocalisationOutcome.MODULE, LocalisationOutcome.GROUP, LocalisationOutcome.BEFORE_STEP_1}

_AGREED = 4


class DefaultMode:
    """An executor that starts what another one would, but as an arm without deterministic mode."""

    def __init__(self, executor: Executor, arm: Arm) -> None:
        self._executor = executor
        self._arm = arm

    def __getattr__(self, name: str) -> Any:
        return getattr(self._executor, name)

    def launch(self, request: LaunchRequest, *args: Any, **kwargs: Any) -> LaunchOutcome:
        words = tuple(word for word in request.arguments if word != "--deterministic-mode")
        request = replace(request, arguments=words, settings=self._arm.settings)
        return self._executor.launch(request, *args, **kwargs)


def launches_of(order: Order, progress: Progress) -> Launches:
    """Recorded launches of the pipeline's default arm on this machine."""
    arm = default_arm(order.pipeline.computation, order.pipeline.policy.overhead)
    made = prepare(order, LocalExecutor(), progress)
    return replace(
        made,
        pipeline=replace(order.pipeline, computation=arm.computation),
        surroundings=replace(made.surroundings, variables=arm.variables),
        executor=cast("Executor", DefaultMode(made.executor, arm)),
        stamps=(STAMP,),
    )


def findings(order: Order, progress: Progress) -> Iterator[dict[str, Any]]:
    """What is known after two launches, and again once the difference is localised."""
    launches = launches_of(order, progress)
    launches.total = 2
    plans = [LaunchPlan(f"default-{number}", "the default mode, traces step 1", trace=1) for number in (1, 2)]
    first, again = [launches.run(plan) for plan in plans]
    for launched in (first, again):
        if not launched.proof.holds:
            raise LaunchError(launched.proof.sentence)
    gate = repeatability_gate(first.trajectory, [again.trajectory], required=True)
    if gate.outcome is Outcome.ERROR:
        raise LaunchError(gate.sentence)
    yield found(order, gate, None)
    if gate.divergence is None:
        return
    where: Localisation | None = None
    if Moment.parse(gate.divergence.moment) == Moment(1):
        expected, observed = [launches.folder(plan.name) / "trace" for plan in plans]
        where = localise(expected, observed)
    if where is None or where.outcome is LocalisationOutcome.VANISHED:
        where = Relaunch(order, launches)(Parted(gate, None, (first, again), None, date.today()))
    yield found(order, gate, where)


def found(order: Order, gate: GateReport, where: Localisation | None) -> dict[str, Any]:
    """The findings as plain values."""
    first = gate.divergence
    return {
        "pipeline": order.pipeline.name,
        "agree": first is None,
        "sentence": gate.sentence if where is None else where.sentence,
        "divergence": None if first is None else asdict(first),
        "spread": [asdict(row) for row in gate.spread[:20]],
        "localisation": None if where is None else asdict(where),
    }


def status(last: Mapping[str, Any]) -> int:
    """The exit status that the findings stand for."""
    if last["agree"]:
        return _AGREED
    where = last["localisation"]
    return 0 if where is not None and where["outcome"] in _LOCALISED else 1


def main() -> int:
    """Launch, print what was found, and write it as soon as it is known."""
    parser = argparse.ArgumentParser(description="Is the default mode deterministic?")
    parser.add_argument("pipeline", nargs="?", default="nemotron-h200")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    root = find_project(Path.cwd())
    last: dict[str, Any] = {}
    try:
        order = Order(load_pipeline(options.pipeline, root), options.out.resolve(), root / "golden")
        for last in findings(order, progress_for(sys.stderr)):
            print(last["sentence"], flush=True)
            if options.json is not None:
                options.json.write_text(json.dumps(last, indent=1) + "\n", encoding="utf-8")
    except ValidatorError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if last["agree"]:
        print("No nondeterminism of the default mode was seen in two launches.")
    return status(last)


if __name__ == "__main__":
    raise SystemExit(main())
