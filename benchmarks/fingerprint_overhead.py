"""What fingerprints cost in step time: real launches with the recorder and without it, in pairs.

    python benchmarks/fingerprint_overhead.py [--pipeline nemotron-cpu] [--pairs 4] [--steps 40] [--target 0.02]
        [--json FILE]

Both arms are launched as a check launches them, in the order on off, off on, on off, … A launch's figure is the median
of its step times, which are Megatron's own ("elapsed time per iteration", all that the loop does between two log
lines, so the fingerprints as well), without the first steps. A pair's figure is the log-ratio of its two launches, and
the interval is Student's over pairs. Target: 2 % on a CPU, 1 % on a GPU. It is held where the whole interval is within
it, and missed where the whole interval is above it; in between, so few pairs cannot tell, and the last line says so.
The exit status is 1 where the mean is above it.

On a machine with other work the lower quartile of the step times, shown as well, is less disturbed than the median.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from validator.check.arguments import launch_arguments, launch_variables
from validator.check.plan import reference
from validator.errors import ValidatorError
from validator.execute.interpreter import find_interpreter
from validator.execute.kit import surround
from validator.execute.launch import Surroundings
from validator.execute.local import LocalExecutor
from validator.execute.request import LaunchRequest
from validator.pipeline import Computation, Corpus, load_pipeline

TARGET = 0.02

#: Steps left out at a launch's beginning, where caches and buffers are filled for the first time.
WARM_UP = 3

#: Two-sided 95 % quantiles of Student's distribution by degrees of freedom.
STUDENT_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}

#: One launch's figure, from its step times; the first is the one that the target is about.
FIGURES: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "lower quartile": lambda times: statistics.quantiles(times, n=4)[0],
}

_STEP_TIME = re.compile(r"elapsed time per iteration \(ms\): ([0-9.]+)")


def step_times(log: Path) -> list[float]:
    """Milliseconds of each step, as Megatron logged them."""
    return [float(found) for found in _STEP_TIME.findall(log.read_text(encoding="utf-8", errors="replace"))]


def measured_steps(computation: Computation, folder: Path, surroundings: Surroundings, *, record: bool) -> list[float]:
    """Step times in milliseconds of one launch in ``folder``, without the first ones."""
    data = computation.data
    assert isinstance(data, Corpus), "the benchmark takes a pipeline with a generated corpus"
    folder.mkdir()
    request = LaunchRequest(
        device=str(computation.device),
        spec=str(computation.spec),
        arguments=tuple(launch_arguments(computation, reference(), folder, None, None)),
        corpus={"documents": data.documents, "vocabulary": data.vocabulary, "seed": data.seed},
        ranks=computation.world_size,
        steps=computation.steps,
        seed=computation.seed,
        trajectory=folder / "trajectory",
        scratch=folder,
        record=record,
        flips=1 if record else None,
    )
    log = folder / "log.txt"
    LocalExecutor().launch(request, surroundings, log=log, limit_seconds=900)
    times = step_times(log)
    if len(times) != computation.steps:
        raise SystemExit(f"{log} holds {len(times)} step times of {computation.steps} steps")
    return times[WARM_UP:]


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean of ``values`` and its two-sided 95 % interval (Student); the interval is infinite for one value."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, -math.inf, math.inf
    quantile = STUDENT_95.get(len(values) - 1, 2.228)
    half = quantile * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def verdict(ratios: Sequence[float], target: float) -> str:
    """What the pairs' log-ratios say about the target, in one sentence."""
    mean, low, high = (math.expm1(value) for value in interval(ratios))
    several = len(ratios) > 1
    known = f"95 % interval {low:+.2%} to {high:+.2%}" if several else "no interval"
    pairs = f"{len(ratios)} pair{'s' if several else ''}"
    between = f"{'within it' if mean <= target else 'above it'}, but {pairs} cannot tell {target:.0%} from none"
    told = "held" if high <= target else "missed" if low > target else between
    return f"{mean:+.2%} of step time, {known}, target {target:.0%}: {told}"


def main() -> int:
    """Measure, print, and return 1 where the mean is above the target."""
    parser = argparse.ArgumentParser(description="Step time with fingerprints against without.")
    parser.add_argument("--pipeline", default="nemotron-cpu")
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--steps", type=int, default=40, help="optimizer steps of each launch")
    parser.add_argument("--target", type=float, default=TARGET, help="largest share of a step's time")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    try:
        return measure(options)
    except ValidatorError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def measure(options: argparse.Namespace) -> int:
    """Launch the pairs, print and write the figures. Raises ``UsageError`` or ``LaunchError``."""
    root = Path(__file__).resolve().parent.parent
    computation = replace(load_pipeline(options.pipeline, root).computation, steps=options.steps)

    ratios: dict[str, list[float]] = {name: [] for name in FIGURES}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        surroundings = surround(folder / "kit", find_interpreter(None), None, launch_variables(computation), {})
        for pair in range(options.pairs):
            times = {
                record: measured_steps(computation, folder / f"{pair}-{record}", surroundings, record=record)
                for record in ((True, False) if pair % 2 == 0 else (False, True))
            }
            shown = []
            for name, figure in FIGURES.items():
                on, off = figure(times[True]), figure(times[False])
                ratios[name].append(math.log(on / off))
                shown.append(f"{name} {on:.1f} ms with, {off:.1f} ms without ({on / off - 1:+.2%})")
            print(f"pair {pair + 1}: {'; '.join(shown)}", flush=True)
    figures = {}
    for name, values in ratios.items():
        mean, low, high = (math.expm1(value) for value in interval(values))
        figures[name] = {"share": mean, "interval": [low, high] if len(values) > 1 else None, "pairs": len(values)}
        print(f"fingerprints cost {mean:+.2%} of a step by the {name}, 95 % interval {low:+.2%} to {high:+.2%}")
    sentence = verdict(ratios["median"], options.target)
    print(sentence)
    mean, _, high = (math.expm1(value) for value in interval(ratios["median"]))
    if options.json is not None:
        found = {
            "pipeline": options.pipeline, "figures": figures, "target": options.target, "held": high <= options.target,
            "sentence": sentence,
        }  # fmt: skip
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if mean <= options.target else 1


if __name__ == "__main__":
    raise SystemExit(main())
