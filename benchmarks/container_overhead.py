"""What a container costs: the same launches inside an image and outside of it, in pairs.

    python benchmarks/container_overhead.py [--pairs 4] [--steps 12] [--image IMAGE --python PATH --bind DIR …]

Without ``--image`` it starts an engine of its own and takes a bare Debian into which this project's environment is
bound (that takes root, dockerd and mmdebstrap). Both sides are launched as a check launches them, in the order in out,
out in, in out, …; a launch's figures are the median of its step times and its whole wall time. A pair's figure is the
log-ratio of its two launches, and the interval is Student's over pairs. Target: steps at most 1.10 times as long; what
the container adds to a launch's start-up and end is shown beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from validator.check.order import Order
from validator.check.place import Place, executors
from validator.check.prepare import prepare
from validator.errors import ValidatorError
from validator.overhead.arms import deterministic_arm
from validator.overhead.bench import Bench
from validator.overhead.statistics import estimate
from validator.pipeline import Pipeline, load_pipeline
from validator.report.progress import progress_for

ROOT = Path(__file__).resolve().parent.parent
TARGET = 1.10


@contextlib.contextmanager
def own_engine() -> Iterator[tuple[str, str, list[Path]]]:
    """Image, interpreter in it, and folders to bind, in an engine that is gone afterwards."""
    from tests.system.engine import ENVIRONMENT, Engine, debian  # noqa: PLC0415 - no image, no engine

    engine = Engine()
    try:
        os.environ["DOCKER_HOST"] = engine.address
        engine.add(debian(), "debian:base")
        yield "debian:base", sys.executable, list(ENVIRONMENT)
    finally:
        engine.close()


def bench(pipeline: Pipeline, place: Place, python: str | None, out: Path) -> Bench:
    """Timed launches of the pipeline in one place."""
    order = Order(pipeline=pipeline, out=out, goldens=ROOT / "golden", python=python, place=place)
    executor, _ = executors(place, pipeline, out)
    return Bench(prepare(order, executor, progress_for(sys.stderr)), pipeline.policy.overhead)


def measure(inside: Bench, outside: Bench, pairs: int) -> tuple[list[float], list[float], float]:
    """Log-ratios of step times, seconds that a launch takes longer inside beyond its steps, and the busiest other."""
    arm = deterministic_arm(inside.launches.pipeline.computation)
    ratios, beyond, busiest = [], [], 0.0
    for number in range(1, pairs + 1):
        sides = (inside, outside) if number % 2 else (outside, inside)
        found = {}
        for side in sides:
            timing = side.time(arm, number, 2 * pairs)
            counted = (side.policy.warmup + side.policy.timed) * timing.median
            found[id(side)] = (timing.median, side.rows[-1].seconds - counted)
            busiest = max(busiest, timing.other_cores)
        (step_in, rest_in), (step_out, rest_out) = found[id(inside)], found[id(outside)]
        ratios.append(math.log(step_in / step_out))
        beyond.append(rest_in - rest_out)
        print(f"pair {number}: a step {step_in:.3f} s inside, {step_out:.3f} s outside; {beyond[-1]:+.1f} s around it")
    return ratios, beyond, busiest


def tell(ratios: Sequence[float], beyond: Sequence[float], busiest: float) -> int:
    """Print what was found; 1 where the target is missed."""
    found = estimate(ratios)
    low, high = 1 + found.interval.lower, 1 + found.interval.upper
    print(f"a step inside takes {1 + found.overhead:.3f} times one outside (95 % interval {low:.3f} to {high:.3f})")
    print(f"start-up and end of a launch take {statistics.fmean(beyond):+.1f} s inside")
    print(f"others kept at most {busiest:.2f} cores busy meanwhile")
    print(f"target        {TARGET}: {'held' if 1 + found.overhead <= TARGET else 'missed'}")
    return 0 if 1 + found.overhead <= TARGET else 1


def main() -> int:
    """Measure, print, and return 1 where the target is missed."""
    parser = argparse.ArgumentParser(description="The same launches inside an image and outside, in pairs.")
    parser.add_argument("--pipeline", default="nemotron-cpu")
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--image")
    parser.add_argument("--python")
    parser.add_argument("--bind", action="append", default=[], type=Path)
    options = parser.parse_args()
    if options.image is None and (os.getuid() != 0 or not all(map(shutil.which, ("dockerd", "mmdebstrap")))):
        print(
            "No engine of its own can be started here (root, dockerd, mmdebstrap): give --image. Nothing was measured."
        )
        return 0
    pipeline = load_pipeline(options.pipeline, ROOT)
    overhead = replace(pipeline.policy.overhead, timed=options.steps)
    pipeline = replace(pipeline, policy=replace(pipeline.policy, overhead=overhead))
    given = contextlib.nullcontext((options.image, options.python, options.bind))
    with given if options.image else own_engine() as (image, python, binds), tempfile.TemporaryDirectory() as folder:
        inside = bench(pipeline, Place(image=image, binds=tuple(binds)), python, Path(folder) / "inside")
        outside = bench(pipeline, Place(), None, Path(folder) / "outside")
        return tell(*measure(inside, outside, options.pairs))


if __name__ == "__main__":
    try:
        raise SystemExit(main())
    except ValidatorError as error:
        print(f"container_overhead: {error}", file=sys.stderr)
        raise SystemExit(3) from error
