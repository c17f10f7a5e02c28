"""The words for what a report holds, the same in every rendering."""

from __future__ import annotations

from collections.abc import Sequence

from validator.report.model import (
    Divergence,
    GateReport,
    LaunchRow,
    Localisation,
    MetricDifference,
    Outcome,
    TracedPlace,
    Verdict,
    WaivedFinding,
)
from validator.report.text import counted, seconds_in_words

#: What each verdict means, in a clause that follows its name.
MEANING = {
    Verdict.NONDETERMINISTIC: "two launches of one environment differ",
    Verdict.CHANGED: "repeatable, but not the golden's bits",
    Verdict.RESUME_BROKEN: "a resumed run differs from the uninterrupted one",
    Verdict.OVER_BUDGET: "determinism costs more than its budget",
    Verdict.HOST_CHANGED: "the golden's own environment no longer gives the golden here",
    Verdict.ERROR: "it could not be found out",
    Verdict.NO_BASELINE: "there is no golden to compare with",
    Verdict.INCONCLUSIVE: "a gating interval straddles its budget",
    Verdict.REBASELINED: "differs from the old golden and equals the new one that travels with the change",
    Verdict.PASS: "every required gate holds",
}

OUTCOME = {
    Outcome.HOLDS: "holds",
    Outcome.FAILS: "fails",
    Outcome.ERROR: "error",
    Outcome.NO_BASELINE: "no baseline",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.NOT_RUN: "not run",
}


def moment_in_words(moment: str) -> str:
    """``step 3``, ``right after the restore of step 3``, ``before the first step after the restore of step 3``."""
    phase, _, step = moment.partition(":")
    if phase == "setup":
        return "at setup" if step == "0" else f"right after the restore of step {step}"
    if phase == "entry":
        return "before the first step" if step == "0" else f"before the first step after the restore of step {step}"
    return f"step {step}" if phase == "step" else moment


def place_in_words(divergence: Divergence) -> str:
    """Moment, rank, group and leaf, as far as they are known, joined by commas."""
    rank = "" if divergence.rank is None else f"rank {divergence.rank}"
    parts = (moment_in_words(divergence.moment), rank, divergence.group, divergence.leaf)
    return ", ".join(part for part in parts if part)


def distance_in_words(metric: MetricDifference) -> str:
    """How far two metrics are apart in units in the last place, where that is defined."""
    return "" if metric.ulps is None else f"{counted(metric.ulps, 'ULP')} apart"


def module_in_words(found: Localisation) -> str:
    """``decoder.layers.1.mlp.router (TopKRouter)``, as far as module and class are known."""
    if not found.module:
        return found.module_class
    return f"{found.module} ({found.module_class})" if found.module_class else found.module


def code_in_words(found: Localisation) -> str:
    """``megatron/core/transformer/moe/router.py:840``; empty where it is not known."""
    return f"{found.file}:{found.line}" if found.file else ""


def localisation_in_words(found: Localisation) -> str:
    """The sentence, and in how many attempts it was so where there were several."""
    if found.attempts < 2:
        return found.sentence
    return f"{found.sentence} Seen in {found.shown} of {found.attempts} pairs of launches."


def traced_place_in_words(place: TracedPlace) -> str:
    """What a traced call is of: its module and what of it."""
    parts = [place.module] if place.module else []
    parts += [place.name] if place.name and place.name != place.module else []
    return ", ".join(parts) or "outside of modules"


def gate_in_words(gate: GateReport) -> str:
    """The gate's sentence, then what it rests on: launches, seconds, and whether it decides the verdict."""
    parts = [] if gate.required else ["advisory"]
    if gate.launches:
        parts.append(counted(gate.launches, "launch", "launches"))
    if gate.seconds:
        parts.append(seconds_in_words(gate.seconds))
    return f"{gate.sentence} ({', '.join(parts)})" if parts else gate.sentence


def ranks_in_words(ranks: Sequence[int]) -> str:
    """``rank 1``, ``ranks 0, 1``, ``every rank``."""
    if not ranks:
        return "every rank"
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def waived_place(finding: WaivedFinding) -> str:
    """Where a waived finding was seen: ranks and places."""
    return ", ".join((ranks_in_words(finding.ranks), *finding.places))


def launch_in_words(launch: LaunchRow) -> str:
    """``reference (uninterrupted run), steps 1 to 10: completed after 21.4 s``."""
    steps = f", steps {launch.steps}" if launch.steps else ""
    return f"{launch.name} ({launch.purpose}){steps}: {launch.ended} after {seconds_in_words(launch.seconds)}"
