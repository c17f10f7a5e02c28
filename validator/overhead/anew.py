"""A result judged again with all that it brings: bits from its trajectories, the overhead from its step times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from validator.check.anew import Grounds, judge_anew
from validator.check.report import sentence_of
from validator.check.verdict import OVERHEAD, headline
from validator.overhead.measurement import estimates_of
from validator.overhead.timings import LONGEST, SHORTEST, LaunchTiming, number
from validator.pipeline.overhead import OverheadPolicy
from validator.report.model import GateReport, Outcome, Report


def judge(claimed: Report, trajectory: Callable[[str], Path], grounds: Grounds) -> Report:
    """:func:`validator.check.anew.judge_anew`, and a claim about the overhead that its measurement does not bear out
    becomes an error of that gate. A claim is never made better.
    """
    found = judge_anew(claimed, trajectory, grounds)
    policy = grounds.pipeline.policy.overhead
    gates = tuple(_checked(gate, found.overhead, policy) if gate.name == OVERHEAD else gate for gate in found.gates)
    if gates == found.gates:
        return found
    (gate,) = (gate for gate in gates if gate.name == OVERHEAD)
    if not gate.required or found.verdict.exit_code:
        return replace(found, gates=gates)
    verdict = headline(gates)
    return replace(found, gates=gates, verdict=verdict, sentence=sentence_of(verdict, gates))


def decided(record: Mapping[str, Any], policy: OverheadPolicy) -> str:
    """What the step times of a record say by the policy's rule: holds, fails or inconclusive.

    Raises ``ValueError``, ``LookupError``, ``TypeError``, ``AttributeError`` or ``ArithmeticError`` where it is none
    that this rule may decide by.
    """
    arms = [[_timing(arm, launch, policy.timed) for launch in arm["launches"]] for arm in record["arms"][:2]]
    rounds = list(zip(*arms, strict=True))
    return estimates_of(rounds, policy.looks)[0].decide(policy.budget).value


def _timing(arm: Mapping[str, Any], launch: Mapping[str, Any], timed: int) -> LaunchTiming:
    steps = tuple(number(step, SHORTEST, LONGEST) for step in launch["steps"])
    if len(steps) != timed:
        raise ValueError(f"{len(steps)} of {timed} steps")
    return LaunchTiming(str(arm["name"]), steps, 1, 0, 0.0, 0.0, 0.0, None, {})


def _checked(gate: GateReport, record: Mapping[str, Any] | None, policy: OverheadPolicy) -> GateReport:
    if gate.outcome is not Outcome.HOLDS:
        return gate
    if record is None:
        return _error(gate, "The result claims that the overhead gate holds, and brings no measurement.")
    try:
        says = decided(record, policy)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        problem = f"its measurement cannot be judged ({type(error).__name__})"
        return _error(gate, f"The result claims that the overhead gate holds, and {problem}.")
    if says == Outcome.HOLDS.value:
        return gate
    return _error(gate, f"The result claims that the overhead gate holds; its step times say {says}.")


def _error(gate: GateReport, sentence: str) -> GateReport:
    return replace(gate, outcome=Outcome.ERROR, sentence=sentence)
