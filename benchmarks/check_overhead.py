"""How much longer a whole check takes than the bare launches that it needs.

    python benchmarks/check_overhead.py [--pipeline nemotron-cpu] [--rounds 2]

The check is the command, from its start to its end. The bare launches are the same ones, started with torchrun
directly, one after the other, without fingerprints and without anybody who watches them; where the check kills a
segment of the resume chain, so does the benchmark, once the log shows the same step and the checkpoint is complete.
Rounds alternate which of the two comes first. Target: 1.15.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from validator.check.arguments import launch_arguments, launch_variables, saved_step
from validator.check.plan import LaunchPlan, reference, repeat, resume_chain
from validator.execute.interpreter import find_interpreter
from validator.execute.kit import launch_environment, surround
from validator.execute.leftovers import MARK, kill_marked
from validator.execute.local import free_port
from validator.execute.request import LaunchRequest, launch_command
from validator.pipeline import Computation, Corpus, Pipeline, load_pipeline

ROOT = Path(__file__).resolve().parent.parent
TARGET = 1.15

#: Exit codes of a check that ran all its launches: it passed, or there was no golden to compare with.
RAN = (0, 4)

_ITERATION = re.compile(rb"iteration +([0-9]+)/")


def check_seconds(pipeline: Pipeline, folder: Path) -> tuple[float, list[str]]:
    """Wall-clock seconds of ``validator check``, and the names of the launches that it needed."""
    report = folder.with_suffix(".json")
    command = [
        sys.executable, "-m", "validator", "check", str(pipeline.file), "--golden", str(ROOT / "golden"),
        "--out", str(folder), "--json", str(report),
    ]  # fmt: skip
    begun = time.perf_counter()
    ran = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    seconds = time.perf_counter() - begun
    if ran.returncode not in RAN:
        raise SystemExit(f"the check ended with {ran.returncode}: {ran.stdout}{ran.stderr}")
    return seconds, [launch["name"] for launch in json.loads(report.read_text(encoding="utf-8"))["launches"]]


def bare_seconds(pipeline: Pipeline, names: Sequence[str], folder: Path) -> list[float]:
    """Wall-clock seconds of each of the launches of these names, started directly."""
    plans = {plan.name: plan for plan in (reference(), repeat(), *resume_chain(pipeline.policy))}
    return [bare_launch(pipeline.computation, plans[name], folder) for name in names]


def bare_launch(computation: Computation, plan: LaunchPlan, root: Path) -> float:
    """Wall-clock seconds of one launch under torchrun, from its start until its last process is gone."""
    folder = root / plan.name
    (folder / "trajectory").mkdir(parents=True)
    load = root / plan.load_from / "checkpoints" if plan.load_from else None
    checkpoints = folder / "checkpoints" if plan.save else None
    data = computation.data
    request = LaunchRequest(
        device=str(computation.device),
        spec=str(computation.spec),
        arguments=tuple(launch_arguments(computation, plan, folder, checkpoints, load)),
        corpus={"documents": data.documents, "vocabulary": data.vocabulary, "seed": data.seed}
        if isinstance(data, Corpus)
        else None,
        ranks=computation.world_size,
        steps=computation.steps,
        seed=computation.seed,
        trajectory=folder / "trajectory",
        scratch=folder,
        record=False,
    )
    file, log, mark = folder / "request.json", folder / "log.txt", uuid.uuid4().hex
    request.write(file)
    interpreter = find_interpreter(None)
    surroundings = surround(root / "kit", interpreter, None, launch_variables(computation), {})
    command = launch_command(interpreter.path, request.ranks, free_port(), file)
    begun = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder,
            env={**launch_environment(surroundings, os.environ), MARK: mark},
        )  # fmt: skip
    try:
        if plan.kill_after is not None and plan.save is not None:
            while process.poll() is None and not (
                last_iteration(log) >= plan.kill_after and saved_step(folder / "checkpoints") >= plan.save.step
            ):
                time.sleep(0.02)
            kill_marked(mark)
            process.wait()
        elif process.wait() != 0:
            raise SystemExit(f"the bare launch {plan.name} failed; see {log}")
    finally:
        kill_marked(mark)
    return time.perf_counter() - begun


def last_iteration(log: Path) -> int:
    """The newest step that Megatron has logged; 0 where there is none yet."""
    found = _ITERATION.findall(log.read_bytes())
    return int(found[-1]) if found else 0


def main() -> int:
    """Measure, print, and return 1 where the target is missed."""
    parser = argparse.ArgumentParser(description="Wall time of a check against its bare launches.")
    parser.add_argument("--pipeline", default="nemotron-cpu")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    pipeline = load_pipeline(options.pipeline, ROOT)

    checks, bares = 0.0, 0.0
    names = [plan.name for plan in (reference(), *resume_chain(pipeline.policy))]
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(options.rounds):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            if number % 2 == 0:  # the first check says which launches it needed
                check, names = check_seconds(pipeline, folder / "check")
                bare = bare_seconds(pipeline, names, folder / "bare")
            else:
                bare = bare_seconds(pipeline, names, folder / "bare")
                check, names = check_seconds(pipeline, folder / "check")
            checks, bares = checks + check, bares + sum(bare)
            each = ", ".join(f"{name} {seconds:.1f}" for name, seconds in zip(names, bare, strict=True))
            print(f"round {number + 1}: check {check:.1f} s, bare launches {sum(bare):.1f} s ({each})", flush=True)
    print(f"a check takes {checks / bares:.3f} times its bare launches")
    print(f"target        {TARGET}: {'held' if checks / bares <= TARGET else 'missed'}")
    return 0 if checks / bares <= TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())
