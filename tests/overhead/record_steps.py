"""Records the step times on which the sequential rule is simulated: ``python -m tests.overhead.record_steps``.

Rounds of two timed launches of nemotron-cpu, one of either arm, in alternating order, as a measurement makes them;
written into ``recorded_steps.json`` under the host's name. It takes about half a minute a round. For the host ``quiet``
a round is left out in which other processes kept more than a tenth of a core busy beside a launch: what is noise there,
and not the machine's own, is told by that figure and not by the step times.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path

from validator.check.order import Order
from validator.check.place import Place
from validator.check.prepare import prepare
from validator.errors import ValidatorError
from validator.execute.local import LocalExecutor
from validator.overhead.bench import Bench
from validator.overhead.measurement import Mode, make_plan
from validator.pipeline import load_pipeline
from validator.report.progress import progress_for

ROOT = Path(__file__).resolve().parents[2]
RECORDING = ROOT / "tests" / "overhead" / "recorded_steps.json"

#: Cores that others may keep busy beside a launch on a quiet host.
QUIET = 0.1


def record(rounds: int, out: Path, limit: float) -> tuple[list[dict[str, list[float]]], int]:
    """Steps in seconds of every launch of ``rounds`` rounds in which others kept at most ``limit`` cores busy, and how
    many rounds were left out; gives up after twice as many.
    """
    pipeline = load_pipeline("nemotron-cpu", ROOT)
    order = Order(pipeline=pipeline, out=out, goldens=ROOT / "golden", place=Place())
    launches = prepare(order, LocalExecutor(), progress_for(sys.stderr))
    policy = pipeline.policy.overhead
    plan = make_plan(pipeline.computation, policy, Mode.FULL, breakdown=False)
    bench = Bench(launches, policy, {})
    found: list[dict[str, list[float]]] = []
    number = 0
    while len(found) < rounds and number < 2 * rounds:
        number += 1
        arms = plan.arms if number % 2 else plan.arms[::-1]
        timings = {arm.name: bench.time(arm, number, 2 * rounds) for arm in arms}
        busiest = max(timing.other_cores for timing in timings.values())
        kept = busiest <= limit
        print(f"round {number}: others kept {busiest:.2f} cores busy{'' if kept else ', left out'}", flush=True)
        if kept:
            found.append({name: [round(step, 6) for step in timing.steps] for name, timing in timings.items()})
    return found, number - len(found)


def main() -> int:
    """Record, and write; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="quiet", help="the name under which the rounds are kept (default: quiet)")
    parser.add_argument("--rounds", type=int, default=24, help="rounds of two launches (default: 24)")
    options = parser.parse_args()
    limit = QUIET if options.host == "quiet" else math.inf
    with tempfile.TemporaryDirectory() as folder:
        found, left_out = record(options.rounds, Path(folder) / "out", limit)
    print(f"{len(found)} rounds were kept, {left_out} left out")
    if len(found) < options.rounds:
        print(f"Not quiet: more than {QUIET} cores; nothing is written. Try again alone, or give --host another name.")
        return 1
    content = json.loads(RECORDING.read_text(encoding="utf-8"))
    content["hosts"][options.host] = found
    lines = [
        f"  {json.dumps(host)}: [\n" + ",\n".join(f"   {json.dumps(each)}" for each in rounds) + "\n  ]"
        for host, rounds in content["hosts"].items()
    ]
    text = f'{{\n "about": {json.dumps(content["about"])},\n "hosts": {{\n' + ",\n".join(lines) + "\n }\n}\n"
    RECORDING.write_text(text, encoding="utf-8")
    print(f"Written to {RECORDING.relative_to(ROOT)}; pytest -s tests/overhead/test_simulations.py says what follows.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ValidatorError as error:
        print(f"record_steps: {error}", file=sys.stderr)
        sys.exit(3)
