"""The command line: one function a command, each importing what it needs, so that ``--help`` starts at once."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from validator import __version__
from validator.errors import UsageError, ValidatorError
from validator.github.commands import COMMANDS as GITHUB_COMMANDS
from validator.options import (
    launches_of,
    order_of,
    pairs,
    pipeline_of,
    place_of,
    plugin_of,
    project_root,
    side_by_side_of,
    store_of,
)
from validator.service.commands import COMMANDS as SERVICE_COMMANDS

if TYPE_CHECKING:
    from validator.check.launches import Launches
    from validator.check.order import Localise, MeasureOverhead, Order
    from validator.trajectory.reader import Trajectory

#: Exit codes beyond those of verdicts and errors: 128 + the signal that ended the run.
INTERRUPTED, TERMINATED = 130, 143

#: It could not be found out: never 1, which says that bits differ.
FAILED = 3


class TerminatedError(BaseException):
    """SIGTERM arrived: unwinds like Ctrl-C, so that launches are ended on the way."""


def check(options: argparse.Namespace) -> int:
    """Run every gate of a pipeline and report one verdict."""
    from validator.check.out import write_reports
    from validator.check.report import build_report
    from validator.check.result import keep_result
    from validator.check.run import Check
    from validator.report.terminal import show

    order = order_of(options)
    launches = launches_of(order)
    side_by_side = side_by_side_of(order, launches)
    measure, localise = _overhead_gate(launches, order), _localiser(options, launches, order)
    findings = Check(order, launches, measure=measure, side_by_side=side_by_side, localise=localise).run()
    report = build_report(findings)
    show(report, sys.stdout)
    write_reports(report, order.out, options.json, options.markdown, options.junit)
    keep_result(findings)
    _publish(options, [order.out / "report.json"])
    return report.verdict.exit_code


def selftest(options: argparse.Namespace) -> int:
    """Launch with faults: every one that changes bits must be caught and named; exit 1 where one is not."""
    from validator.selftest.command import selftest_and_show, wish_of

    wish, order = wish_of(options), order_of(options)
    code, _ = selftest_and_show(launches_of(order), order.goldens, wish, order.out, options.json, options.markdown)
    _publish(options, [order.out / "selftest.json"])
    return code


def faults(_: argparse.Namespace) -> int:
    """List the faults that a self-test launches with, and what each is modelled on."""
    from validator.selftest.command import list_faults

    print(list_faults(), end="")
    return 0


def bisect(options: argparse.Namespace) -> int:
    """Find a smallest set of package changes that flips the outcome; exit 1 where none does."""
    from datetime import datetime

    from validator.check.order import Order
    from validator.check.out import default_out
    from validator.diagnose.bisect.command import bisect_and_show

    plugin, pipeline, changes = plugin_of(options), pipeline_of(options), pairs("--env", options.env)
    now = datetime.now().astimezone()
    out = Path(options.out).resolve() if options.out else default_out(Path.cwd(), f"bisect-{pipeline.name}", now)
    megatron = Path(options.megatron) if options.megatron else None
    goldens, place = store_of(options).root, place_of(options)
    order = Order(pipeline, out, goldens, changes, megatron=megatron, place=place, plugin=plugin)
    return bisect_and_show(options, order)


def overhead(options: argparse.Namespace) -> int:
    """Measure what determinism costs: step time in deterministic mode over the fastest default mode."""
    from validator.overhead.command import measure_and_show, wish_of

    order = order_of(options)
    code = measure_and_show(launches_of(order), order.changes, wish_of(options), order.out, options.json, options.html)
    _publish(options, [order.out / "overhead.json"])
    return code


def report(options: argparse.Namespace) -> int:
    """Show a check's result again, as a page of HTML, Markdown, JUnit or on the terminal."""
    from validator.check.rendered import render_result

    return render_result(Path(options.result), options.html, options.markdown, options.junit)


def record(options: argparse.Namespace) -> int:
    """Launch a pipeline once and keep its trajectory."""
    from validator.check.baseline import record_trajectory

    target = Path(options.out).absolute()
    if target.exists():
        raise UsageError(f"{target} exists; --out takes a folder that is not there yet.")
    options.out = None
    trajectory = record_trajectory(launches_of(order_of(options)), target)
    print(f"{target}: {len(trajectory.moments)} moments of {len(trajectory.ranks)} ranks, root {trajectory.root.hex()}")
    return 0


def compare(options: argparse.Namespace) -> int:
    """Compare two trajectories; exit 0 where they are equal, 1 where not, 3 where they cannot be compared."""
    from validator.check.compared import compare_folders

    code, lines = compare_folders(Path(options.expected), Path(options.observed), options.html)
    print("\n".join(lines))
    return code


def golden_record(options: argparse.Namespace) -> int:
    """Make what a pipeline computes here its golden, after two launches that agree and a resume that holds."""
    from datetime import UTC, datetime

    from validator.check.baseline import record_golden
    from validator.golden import Approval

    order = order_of(options, may_be_new=True)
    approval = Approval(
        approver=options.approver, requester=options.requester or options.approver, reason=options.reason, launches=0,
        resume="", recorded=datetime.now(UTC).date(), change=options.change, accept_drift=options.accept_drift,
    )  # fmt: skip
    golden, resume = record_golden(
        order.pipeline, launches_of(order), store_of(options, may_be_new=True), approval, trace=_trace_of_step_1
    )
    print(f"Recorded {golden.folder}, digest {golden.digest}, supersedes {golden.record.supersedes or 'none'}")
    for finding in resume.waived if resume is not None else ():
        print(f"waived: {finding.leaf}, {', '.join(finding.places)}")
    print("Commit it in the change that causes it.")
    return 0


def golden_propose(options: argparse.Namespace) -> int:
    """Launch and record new goldens for a change, with what an owner needs to see before approving them."""
    from datetime import UTC, datetime

    from validator.check.baseline import record_golden
    from validator.check.out import default_out
    from validator.check.prepare import refuse_used
    from validator.check.propose import proposal_of, store_for, write_proposal
    from validator.golden import Approval
    from validator.golden.history import Repository

    now, names = datetime.now(UTC), options.pipeline
    out = Path(options.out).resolve() if options.out else default_out(Path.cwd(), "proposal", now.astimezone())
    refuse_used(out)
    commit = Repository.around(project_root()).resolve("HEAD")
    approval = Approval(
        approver=options.approver or options.requester, requester=options.requester, reason=options.reason,
        launches=0, resume="", recorded=now.date(), change=options.change, accept_drift=options.accept_drift,
    )  # fmt: skip
    proposals, base = [], ""
    for options.pipeline in dict.fromkeys(names):
        options.out = str(out / "work" / options.pipeline)
        order = order_of(options)
        assert order.base is not None
        base, launches = order.base.revision, launches_of(order)
        key = (order.pipeline.name, launches.hardware_class)
        store = store_for(order.base, out, *key)
        golden, _ = record_golden(order.pipeline, launches, store, approval, trace=_trace_of_step_1)
        proposals.append(proposal_of(order.base.goldens.find(*key), golden))
        print(f"Proposed {golden.folder}, digest {golden.digest}, supersedes {golden.record.supersedes or 'none'}")
    print(f"What an owner needs to see: {write_proposal(out, commit, base, proposals)}")
    return 0


def golden_show(options: argparse.Namespace) -> int:
    """Print the record of a pipeline's goldens."""
    records = [each for each in store_of(options).list() if each.pipeline == options.pipeline]
    if not records:
        raise UsageError(
            f"There is no golden of {options.pipeline!r} in {store_of(options).root}; see validator golden list."
        )
    for found in records:
        print(found.to_text(), end="")
    return 0


def golden_list(options: argparse.Namespace) -> int:
    """List all goldens."""
    for found in store_of(options).list():
        about = f"{found.recorded.isoformat()}  {found.approver}: {found.reason}"
        print(f"{found.pipeline}  {found.hardware_class}  {found.digest[:12]}  {about}")
    return 0


def golden_verify(options: argparse.Namespace) -> int:
    """Check every golden's files and the chain of what each one supersedes; exit 3 where something is wrong."""
    from validator.golden import verify

    found = verify(store_of(options))
    for line in (*found.problems, *found.remarks):
        print(line)
    print(f"{len(found.checked)} checked, {len(found.problems)} problems")
    return 0 if found.holds else FAILED


def golden_log(options: argparse.Namespace) -> int:
    """Show the history of a pipeline's goldens, newest first."""
    from validator.golden import log

    store = store_of(options)
    keys = [key for key in store.keys() if key[0] == options.pipeline]  # noqa: SIM118 - no mapping
    if not keys:
        raise UsageError(f"There is no golden of {options.pipeline!r} in {store.root}; see validator golden list.")
    for pipeline, hardware_class in keys:
        print(f"{pipeline} on {hardware_class}")
        for version in log(store, pipeline, hardware_class):
            commit, found = version.commit, version.record
            what = f"{found.digest[:12]} approved by {found.approver}: {found.reason}" if found else "no golden"
            print(f"  {commit.identity[:12]} {commit.date} {commit.author}: {what}")
    return 0


def pipeline_list(_: argparse.Namespace) -> int:
    """List the pipelines of the project."""
    from validator.pipeline import find_pipelines, load_pipeline

    for file in find_pipelines(project_root()):
        found = load_pipeline(file, project_root())
        print(f"{found.name}  {found.description}")
    return 0


def pipeline_validate(options: argparse.Namespace) -> int:
    """Check one pipeline, or all; exit 2 for the first that is not valid."""
    from validator.pipeline import find_pipelines, load_pipeline

    for chosen in [options.pipeline] if options.pipeline else find_pipelines(project_root()):
        found = load_pipeline(chosen, project_root())
        print(f"{found.file}: valid, computation {found.computation.digest[:12]}")
    return 0


def pipeline_show(options: argparse.Namespace) -> int:
    """Print a pipeline's computation, and the launches of its check."""
    import json

    from validator.check import plan

    found = pipeline_of(options)
    print(json.dumps(found.computation.to_json(), indent=2))
    for launch in (plan.reference(), *plan.resume_chain(found.policy)):
        print(f"{launch.name}: {launch.purpose}")
    return 0


def doctor(options: argparse.Namespace) -> int:
    """Say what this machine can run, what is missing, and how to get it; exit 3 where something is missing."""
    from validator.execute.doctor import diagnose
    from validator.github.commands import doctor as github_doctor

    if options.github:
        return github_doctor(options)
    if options.image is not None:
        return _doctor_of_image(options)
    found = diagnose(options.python, Path.cwd(), Path(options.megatron) if options.megatron else None)
    for finding in found.findings:
        print(f"{finding.state:8} {finding.name:14} {finding.found}")
        if finding.advice:
            print(f"{'':23} {finding.advice}")
    print("Pipelines for CPU run here." if found.can_run else "Something is missing: see above.")
    return 0 if found.can_run else FAILED


def _doctor_of_image(options: argparse.Namespace) -> int:
    from validator.execute.image_doctor import diagnose_image

    found = diagnose_image(options.image, options.python, [Path(folder).absolute() for folder in options.bind])
    for finding in found.findings:
        print(f"{finding.state:8} {finding.name:14} {finding.found}")
        if finding.advice:
            print(f"{'':23} {finding.advice}")
    print("Launches run in this image." if found.can_run else found.lacking)
    return 0 if found.can_run else FAILED


def _localiser(options: argparse.Namespace, launches: Launches, order: Order) -> Localise | None:
    if not wants_localisation(options.localise):
        return None
    from validator.diagnose.relaunch import Relaunch

    return Relaunch(order, launches)


def wants_localisation(asked: bool | None) -> bool:
    """By default for a person at a terminal; elsewhere it is asked for, since it launches again."""
    return sys.stdout.isatty() and not os.environ.get("CI") if asked is None else asked


def _trace_of_step_1(launches: Launches, trajectory: Trajectory) -> bytes | None:
    from validator.diagnose.golden_trace import trace_of_step_1

    try:
        return trace_of_step_1(launches, trajectory)
    except ValidatorError as error:
        print(f"validator: the golden goes without a module trace of step 1: {error}", file=sys.stderr)
        return None


def _overhead_gate(launches: Launches, order: Order) -> MeasureOverhead | None:
    from validator.pipeline import Gate, Requirement

    if order.requirements[Gate.OVERHEAD] is Requirement.OFF:
        return None
    from validator.overhead.command import gate_of

    return gate_of(launches)


def metrics(options: argparse.Namespace) -> int:
    """Push reports and overhead records to a Pushgateway, or write them as a textfile for node_exporter."""
    _publish(options, [Path(file) for file in options.records])
    return 0


def _publish(options: argparse.Namespace, records: Sequence[Path]) -> None:
    """Metrics, where they are asked for; what goes wrong with them is said and never changes the answer."""
    if options.push is None and options.textfile is None:
        return
    from validator.metrics.publish import publish

    for line in publish(records, options.push, options.textfile, project_root(), os.environ):
        print(f"validator: {line}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Nothing that a person did wrong ends in a traceback."""
    from validator.arguments import parser

    options = parser(__version__, COMMANDS).parse_args(arguments)
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        code: int = options.command(options)
        sys.stdout.flush()
        return code
    except ValidatorError as error:
        from validator.report.text import printable_message, write_text

        write_text(sys.stderr, f"validator: {printable_message(str(error))}\n")
        return error.exit_code
    except KeyboardInterrupt:
        print("validator: interrupted; every launch was ended.", file=sys.stderr)
        return INTERRUPTED
    except TerminatedError:
        print("validator: terminated; every launch was ended.", file=sys.stderr)
        return TERMINATED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception:
        import traceback

        traceback.print_exc()
        print("validator: this is a defect of the validator and says nothing about the bits.", file=sys.stderr)
        return FAILED
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminate(*_: object) -> NoReturn:
    raise TerminatedError


#: What each command name runs.
COMMANDS = {
    "check": check, "overhead": overhead, "metrics": metrics, "record": record, "compare": compare, "doctor": doctor,
    "report": report, "selftest": selftest, "faults": faults, "bisect": bisect,
    "golden record": golden_record, "golden show": golden_show, "golden list": golden_list,
    "golden verify": golden_verify, "golden log": golden_log, "golden propose": golden_propose,
    "pipeline list": pipeline_list, "pipeline validate": pipeline_validate, "pipeline show": pipeline_show,
    **GITHUB_COMMANDS,
    **SERVICE_COMMANDS,
}  # fmt: skip
