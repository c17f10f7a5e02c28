"""Records a golden candidate of this machine: two launches that agree.

    python benchmarks/gpu/golden.py [PIPELINE] --golden STORE --out FOLDER [--json FILE]

``validator golden record`` also walks the chain of resumes, and launches once more for a module trace. Both are left
out here for want of time: the check that follows walks the chain. The record says so (``resume: off``), and is nobody's
approval.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from validator.check.baseline import record_golden
from validator.check.order import Order
from validator.check.prepare import prepare
from validator.errors import ValidatorError
from validator.execute.launch import Executor
from validator.execute.local import LocalExecutor
from validator.golden import Approval, Golden, GoldenStore
from validator.pipeline import Gate, Pipeline, Requirement, find_project, load_pipeline
from validator.report.progress import Progress, progress_for


def without_resume(pipeline: Pipeline) -> Pipeline:
    """The pipeline with its resume gate off; its computation, which is what a golden is of, stays."""
    gates = {**pipeline.policy.gates, Gate.RESUME: Requirement.OFF}
    return replace(pipeline, policy=replace(pipeline.policy, gates=gates))


def record(order: Order, executor: Executor, progress: Progress) -> Golden:
    """The candidate, written into the order's store. Raises what ``record_golden`` raises."""
    order = replace(order, pipeline=without_resume(order.pipeline))
    approval = Approval(
        approver="on_gpu.sh", requester="on_gpu.sh", reason="candidate of this machine", launches=0, resume="",
        recorded=datetime.now(UTC).date(),
    )  # fmt: skip
    store = GoldenStore(order.goldens, follows_git=False)
    golden, _ = record_golden(order.pipeline, prepare(order, executor, progress), store, approval)
    return golden


def main() -> int:
    """Record, and say what."""
    parser = argparse.ArgumentParser(description="A golden candidate of this machine.")
    parser.add_argument("pipeline", nargs="?", default="nemotron-h200")
    parser.add_argument("--golden", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    try:
        pipeline = load_pipeline(options.pipeline, find_project(Path.cwd()))
        order = Order(pipeline, options.out.resolve(), options.golden.resolve())
        golden = record(order, LocalExecutor(), progress_for(sys.stderr))
    except ValidatorError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    sentence = f"{golden.record.launches} launches agree; recorded {golden.digest[:12]}"
    print(f"{sentence} in {golden.folder}")
    if options.json is not None:
        found = {
            "pipeline": golden.record.pipeline, "hardware_class": golden.record.hardware_class,
            "digest": golden.digest, "folder": str(golden.folder), "sentence": sentence,
        }  # fmt: skip
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
