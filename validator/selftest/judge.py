"""From launches of a fault to what became of it. Pure but for the files that launches left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from validator.compare import Waive, compare
from validator.comparison import Divergence, MomentPair
from validator.diagnose.localise import localise
from validator.faults import Fault
from validator.selftest.approaches import other_approaches
from validator.selftest.outcome import FaultResult, Outcome
from validator.selftest.witness import Account, differ
from validator.trajectory.reader import Trajectory


@dataclass(frozen=True, slots=True)
class Side:
    """One launch: its trajectory, its own account, and its module trace where it wrote one."""

    trajectory: Trajectory
    account: Account
    trace: Path | None = None
    touched: frozenset[tuple[str, str]] = frozenset()


def judge(
    fault: Fault,
    expected: Side,
    observed: Side,
    pairs: Sequence[MomentPair] | None = None,
    waive: Waive | None = None,
) -> FaultResult:
    """Compare a launch with a fault with the one that it is to be compared with.

    ``pairs`` are as in ``compare``; by default the moments of ``observed``.
    """
    if pairs is None:
        pairs = [MomentPair(moment, moment) for moment in observed.trajectory.moments]
    comparison = compare(expected.trajectory, observed.trajectory, pairs, waive)
    changed = differ(expected.account, observed.account)
    if comparison.refused is not None:
        return became(fault, Outcome.ERROR, comparison.refused)
    if comparison.first is None:
        outcome = Outcome.MISSED if changed else Outcome.NO_EFFECT
        sentence = "Bits changed, and the comparison saw none of it." if changed else "No bit changed here."
        return became(fault, outcome, sentence)
    first = comparison.first
    found_module, localised = _module(fault, expected, observed)
    named = _is_named(fault, first, observed.touched)
    sentence = first.sentence if changed else f"{first.sentence} (the launch's own account saw no change)"
    return replace(
        became(fault, Outcome.CAUGHT_AND_NAMED if named else Outcome.CAUGHT, sentence),
        found=f"{first.moment} {first.name}",
        found_module=found_module,
        localised=localised,
        approaches=other_approaches(expected.trajectory, observed.trajectory),
    )


def became(fault: Fault, outcome: Outcome, sentence: str) -> FaultResult:
    """What became of a fault, with what is said of it whatever that is."""
    return FaultResult(
        name=fault.name,
        category=str(fault.category),
        does=fault.does,
        gate=fault.gate,
        outcome=outcome,
        expected="" if fault.expected is None else str(fault.expected),
        module=fault.module,
        sentence=sentence,
    )


def _is_named(fault: Fault, first: Divergence, touched: frozenset[tuple[str, str]]) -> bool:
    group, leaf = str(first.group or ""), "" if first.leaf is None else first.leaf.name
    if touched and (group, leaf) not in touched:
        return False
    return fault.expected is not None and fault.expected.covers(str(first.moment), first.rank, group, leaf)


def _module(fault: Fault, expected: Side, observed: Side) -> tuple[str, bool | None]:
    if not fault.module or expected.trace is None or observed.trace is None:
        return "", None
    found = localise(expected.trace, observed.trace).module
    return found, fnmatchcase(found, fault.module)
