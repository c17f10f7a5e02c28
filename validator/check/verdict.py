"""From the gates' outcomes to one headline: the first rule of DESIGN.md 4 that applies. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from validator.report.model import GateReport, Outcome, Verdict

GOLDEN = "golden"
REPEATABILITY = "repeatability"
RESUME = "resume"
RECORDER = "recorder"
OVERHEAD = "overhead"
REBASELINE = "rebaseline"
ATTRIBUTION = "attribution"


def headline(gates: Sequence[GateReport]) -> Verdict:
    """The verdict over all gates. Advisory gates never make it worse, except that they say what a mismatch is.

    A golden mismatch is ``changed`` only where repeatability holds or is switched off: without that answer it may as
    well be nondeterminism, so it is ``error``. With nothing to go by at all (every gate off) the answer is ``error``
    too. The gate of a golden that comes with a change takes the golden gate's place, which is advisory then.
    """
    by_name: Mapping[str, GateReport] = {gate.name: gate for gate in gates}
    recorder = by_name.get(RECORDER)
    if recorder is not None and recorder.outcome in {Outcome.ERROR, Outcome.FAILS}:
        return Verdict.ERROR  # what a blind recorder says about bits is nothing
    golden, repeatability = by_name.get(GOLDEN), by_name.get(REPEATABILITY)
    golden_fails = golden is not None and golden.required and golden.outcome is Outcome.FAILS
    if (
        repeatability is not None
        and repeatability.outcome is Outcome.FAILS
        and (repeatability.required or golden_fails)
    ):
        return Verdict.NONDETERMINISTIC
    if golden_fails and (repeatability is None or repeatability.outcome in {Outcome.HOLDS, Outcome.NOT_RUN}):
        attribution = by_name.get(ATTRIBUTION)
        if attribution is not None and attribution.outcome is Outcome.FAILS and attribution.divergence is None:
            return Verdict.HOST_CHANGED  # the golden's own environment gives the candidate's bits here
        return Verdict.CHANGED
    rebaseline = by_name.get(REBASELINE)
    brings = rebaseline is not None and rebaseline.outcome
    required = [gate for gate in gates if gate.required and gate.name != REBASELINE]
    resume = by_name.get(RESUME)
    if resume is not None and resume.required and resume.outcome is Outcome.FAILS:
        return Verdict.RESUME_BROKEN
    if _over_budget(by_name) and not golden_fails and brings is not Outcome.FAILS:
        return Verdict.OVER_BUDGET
    if golden_fails or any(gate.outcome is Outcome.ERROR for gate in required):
        return Verdict.ERROR
    if brings is Outcome.FAILS:
        return Verdict.CHANGED  # the golden that would be in force is not what is computed
    if (verdict := _left_open(required)) is not None:
        return verdict
    if brings is Outcome.HOLDS and golden is not None and golden.outcome is not Outcome.HOLDS:
        return Verdict.REBASELINED
    return Verdict.PASS


def _left_open(required: Sequence[GateReport]) -> Verdict | None:
    """What is left to find out where nothing fails; ``None`` where every required gate holds."""
    outcomes = {gate.outcome for gate in required}
    if Outcome.NO_BASELINE in outcomes:
        return Verdict.NO_BASELINE
    if not outcomes or outcomes - {Outcome.HOLDS, Outcome.INCONCLUSIVE}:
        return Verdict.ERROR
    return Verdict.INCONCLUSIVE if Outcome.INCONCLUSIVE in outcomes else None


def _over_budget(by_name: Mapping[str, GateReport]) -> bool:
    overhead = by_name.get(OVERHEAD)
    return overhead is not None and overhead.required and overhead.outcome is Outcome.FAILS


#: What each verdict means, for the line beneath it.
SENTENCES: Mapping[Verdict, str] = {
    Verdict.NONDETERMINISTIC: "Two launches of one environment differ: this is not a deterministic computation.",
    Verdict.CHANGED: "Repeatable, but not the golden's bits: something changed the computation.",
    Verdict.RESUME_BROKEN: "The resumed run differs from the uninterrupted one.",
    Verdict.OVER_BUDGET: "Determinism costs more than the budget allows.",
    Verdict.HOST_CHANGED: "The golden's own environment no longer gives the golden's bits on this host.",
    Verdict.ERROR: "It could not be found out; this says nothing about the bits.",
    Verdict.NO_BASELINE: "There is no golden to compare with; the other gates ran.",
    Verdict.INCONCLUSIVE: "The overhead's interval straddles its budget.",
    Verdict.REBASELINED: "The bits differ from the old golden and equal the new one that comes with the change.",
    Verdict.PASS: "Every required gate holds.",
}
