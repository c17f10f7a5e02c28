"""From what a check found to the one report that all renderers show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from validator.check.base import Base
from validator.check.findings import environment_rows, step_rows
from validator.check.order import Findings, Order
from validator.check.verdict import ATTRIBUTION, REBASELINE, SENTENCES, headline
from validator.environment import Environment
from validator.errors import TrajectoryError
from validator.golden import Golden
from validator.pipeline import find_project
from validator.report.model import EnvironmentDifferenceRow, GateReport, Outcome, PolicyChangeRow, Report, Verdict


def build_report(findings: Findings) -> Report:
    """Everything a check found, with its verdict."""
    order = findings.order
    verdict = headline(findings.gates)
    suggestion = findings.book.suggestion()
    return Report(
        verdict=verdict,
        sentence=sentence_of(verdict, findings.gates),
        pipeline=order.pipeline.name,
        hardware_class=findings.hardware_class,
        started=findings.started.isoformat(timespec="seconds"),
        seconds=findings.seconds,
        gates=findings.gates,
        golden=golden_facts(findings.golden),
        environment_difference=_difference(findings.golden, findings.environment),
        unexercised=findings.unexercised,
        unused_waivers=findings.book.unused() if _resume_ran(findings.gates) else (),
        expired_waivers=findings.book.expired(),
        suggested_waivers=_as_policy(suggestion, bool(order.pipeline.policy.waivers)),
        steps=step_rows(findings.reference.trajectory) if findings.reference is not None else (),
        launches=tuple(findings.launches.rows),
        stamps=order.stamps,
        reproduce=command_line(order),
        next_step=_next_step(verdict, order, suggestion),
        out=str(order.out),
        environment=findings.environment.to_json() if findings.environment is not None else {},
        overhead=findings.overhead,
        base="" if order.base is None else order.base.revision,
        policy_changes=policy_rows(order.base),
        new_golden=golden_facts(findings.new_golden),
    )


def policy_rows(base: Base | None) -> tuple[PolicyChangeRow, ...]:
    """What the change does to the policy, which has no effect on its own check."""
    changes = () if base is None else base.policy_changes
    return tuple(PolicyChangeRow(change.key, change.before, change.after) for change in changes)


def command_line(order: Order) -> str:
    """The one line that does the same again."""
    words = ["validator", "check", _named(order)]
    if order.goldens.resolve() != order.pipeline.file.resolve().parent.parent / "golden":
        words += ["--golden", str(order.goldens)]
    if order.base is not None:
        words += ["--base", order.base.revision]
    for name, value in order.changes.items():
        words += ["--env", f"{name}={value}"]
    if order.python is not None:
        words += ["--python", order.python]
    if order.megatron is not None:
        words += ["--megatron", str(order.megatron)]
    words += order.place.words
    if order.plugin is not None:
        words += ["--plugin", str(order.plugin.file)]
    for name, setting in order.switches.items():
        words += ["--switch", f"{name}={setting}"]
    if order.keep_going:
        words.append("--keep-going")
    if order.overhead is not None:
        words += ["--overhead", str(order.overhead)]
    if order.launches > 1:
        words += ["--launches", str(order.launches)]
    return shlex.join(words)


def _named(order: Order) -> str:
    """The pipeline's name where it is found by it, else its file."""
    file: Path = order.pipeline.file
    meant = find_project(Path.cwd()) / "pipelines" / file.name
    another = meant.is_file() and not (file.is_file() and meant.samefile(file))
    return order.pipeline.name if file.parent.name == "pipelines" and not another else str(file)


def sentence_of(verdict: Verdict, gates: tuple[GateReport, ...]) -> str:
    """What the verdict means; for an error, what went wrong."""
    if verdict is Verdict.ERROR:
        errors = [gate for gate in gates if gate.outcome is Outcome.ERROR]
        if errors:
            return next((gate.sentence for gate in errors if gate.required), errors[0].sentence)
    attributed = [gate for gate in gates if gate.name == ATTRIBUTION and gate.outcome is not Outcome.ERROR]
    if attributed and verdict in {Verdict.CHANGED, Verdict.HOST_CHANGED}:
        return attributed[0].sentence
    if verdict is Verdict.CHANGED:
        brought = [gate for gate in gates if gate.name == REBASELINE and gate.outcome is Outcome.FAILS]
        if brought:
            return brought[0].sentence
    return SENTENCES[verdict]


def golden_facts(golden: Golden | None) -> Mapping[str, object] | None:
    """What a golden's record says."""
    if golden is None:
        return None
    record = golden.record
    return {
        "digest": record.digest,
        "recorded": record.recorded.isoformat(),
        "approver": record.approver,
        "reason": record.reason,
        "launches": record.launches,
        "supersedes": record.supersedes,
        "requester": record.requester,
        "drift": {name: drift.largest for name, drift in record.drift.items()},
        "folder": str(golden.folder),
    }


def _difference(golden: Golden | None, observed: Environment | None) -> tuple[EnvironmentDifferenceRow, ...]:
    if golden is None or observed is None:
        return ()
    try:
        return environment_rows(Environment.from_json(golden.trajectory.environment), observed)
    except TrajectoryError:  # the bits are compared all the same; an unreadable environment explains nothing
        return ()


def _resume_ran(gates: tuple[GateReport, ...]) -> bool:
    return any(gate.name == "resume" and gate.outcome in {Outcome.HOLDS, Outcome.FAILS} for gate in gates)


def _as_policy(suggestion: str, has_waivers: bool) -> str:
    """Waivers as they stand under ``policy:``; to be added to its list where it has one."""
    if not suggestion:
        return ""
    head = "    # to be added to the list of waivers:\n" if has_waivers else "  waivers:\n"
    return head + "".join(f"    {line}\n" for line in suggestion.splitlines())


def _next_step(verdict: Verdict, order: Order, suggestion: str) -> str:
    record = f"validator golden record {shlex.quote(_named(order))} --reason REASON --approver NAME"
    match verdict:
        case Verdict.CHANGED:
            return f"Look at the first divergence and the environment; if the change is meant: {record}"
        case Verdict.NO_BASELINE:
            return f"If these bits are right: {record}"
        case Verdict.NONDETERMINISTIC:
            return (
                "Find the source: the first divergence names the step, rank and leaf at which two equal launches part."
            )
        case Verdict.RESUME_BROKEN if suggestion:
            return "Repair the resume; only a defect that is known and understood can be waived, as printed."
        case Verdict.RESUME_BROKEN:
            return "Repair the resume: the first divergence names what a restore did not bring back."
        case Verdict.ERROR:
            return (
                "Repair what the sentence names, and run the check again; validator doctor says what is missing here."
            )
        case _:
            return ""
