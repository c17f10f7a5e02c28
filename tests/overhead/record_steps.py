"""Records the step times on which the sequential rule is simulated: ``python -m tests.overhead.record_steps``.

Rounds of two timed launches of nemotron-cpu, one of either arm, in alternating order, as a measurement makes them;
written into ``recorded_steps.json`` under the host's name. It takes about half a minute a round. For the host ``quiet``
nothing is written where other processes kept more than a tenth of a core busy beside a launch.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
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


def record(rounds: int, out: Path) -> tuple[list[dict[str, list[float]]], float]:
    """Steps of every launch in seconds, and the most cores that others kept busy beside one."""
    pipeline = load_pipeline("nemotron-cpu", ROOT)
    order = Order(pipeline=pipeline, out=out, goldens=ROOT / "golden", place=Place())
    launches = prepare(order, LocalExecutor(), progress_for(sys.stderr))
    policy = pipeline.policy.overhead
    plan = make_plan(pipeline.computation, policy, Mode.FULL, breakdown=False)
    plan = replace(plan, looks=(rounds,))
    bench = Bench(launches, policy, {})
    found: list[dict[str, list[float]]] = []
    busiest = 0.0
    for number in range(1, rounds + 1):
        arms = plan.arms if number % 2 else plan.arms[::-1]
        steps = {}
        for arm in arms:
            timing = bench.time(arm, number, plan.launches)
            steps[arm.name] = [round(step, 6) for step in timing.steps]
            busiest = max(busiest, timing.other_cores)
        found.append(steps)
    return found, busiest


def main() -> int:
    """Record, and write; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="quiet", help="the name under which the rounds are kept (default: quiet)")
    parser.add_argument("--rounds", type=int, default=24, help="rounds of two launches (default: 24)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found, busiest = record(options.rounds, Path(folder) / "out")
    print(f"{len(found)} rounds; others kept at most {busiest:.2f} cores busy")
    if options.host == "quiet" and busiest > QUIET:
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
