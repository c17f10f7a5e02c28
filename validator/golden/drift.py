"""Is a candidate fit to become golden: finite values, and how far its losses and gradient norm moved."""

from __future__ import annotations

import math
import re

from validator.errors import UsageError
from validator.golden.record import Drift
from validator.trajectory.groups import Moment, Phase
from validator.trajectory.reader import Trajectory

#: A larger relative move of one of the metrics below must be acknowledged.
LARGE_DRIFT = 0.05

#: What drift is measured on: last part of a metric's name, in which anything but letters and digits reads ``_``.
DRIFT_METRICS = ("lm_loss", "training_loss", "grad_norm")


def check_finite(trajectory: Trajectory) -> None:
    """Raise ``UsageError`` naming the first metric that is infinite or no number."""
    for moment in trajectory.moments:
        for rank in trajectory.ranks:
            for name, metric in trajectory.metrics(rank, moment).items():
                if not math.isfinite(metric.value):
                    problem = f"The candidate has {name} = {metric.value} at {moment} on rank {rank}"
                    raise UsageError(f"{problem}; a golden holds finite values only, so repair the training first.")


def measure_drift(old: Trajectory, new: Trajectory) -> dict[str, Drift]:
    """Relative move of losses and gradient norm over the steps and ranks that both have; empty where none is shared."""
    largest: dict[str, tuple[float, Moment]] = {}
    final: dict[str, tuple[Moment, float]] = {}
    shared = set(old.moments)
    for moment in (moment for moment in new.moments if moment.phase is Phase.STEP and moment in shared):
        for rank in sorted(set(old.ranks) & set(new.ranks)):
            before, after = old.metrics(rank, moment), new.metrics(rank, moment)
            for name in sorted(before.keys() & after.keys()):
                if _short(name) not in DRIFT_METRICS:
                    continue
                move = relative_move(float(before[name].value), float(after[name].value))
                if name not in largest or move > largest[name][0]:
                    largest[name] = (move, moment)
                at_last = final[name][1] if name in final and final[name][0] == moment else 0.0
                final[name] = (moment, max(move, at_last))
    return {name: Drift(move, str(moment), final[name][1]) for name, (move, moment) in largest.items()}


def check_drift(drift: dict[str, Drift]) -> None:
    """Raise ``UsageError`` where a golden is superseded by values that moved far, or that cannot be set against it."""
    if not drift:
        raise UsageError(
            f"The candidate shares no {' or '.join(DRIFT_METRICS)} with the golden it supersedes, "
            "so its drift is unknown; look at both, then record it with --accept-drift."
        )
    name, worst = max(drift.items(), key=lambda entry: entry[1].largest)
    if worst.largest > LARGE_DRIFT:
        raise UsageError(
            f"The candidate's {name} moves by {worst.largest:.1%} at {worst.moment} against the golden it supersedes, "
            f"more than {LARGE_DRIFT:.0%}; make sure that this is meant, then record it with --accept-drift."
        )


def relative_move(before: float, after: float) -> float:
    """|after - before| / max(|after|, |before|), 0 where both are 0; in 0 … 2 for finite values."""
    scale = max(abs(before), abs(after))
    return 0.0 if scale == 0 else abs(after / scale - before / scale)


def _short(name: str) -> str:
    """``train/lm loss`` -> ``lm_loss``"""
    return re.sub(r"[^a-z0-9]+", "_", re.split(r"[/.:]", name.lower())[-1]).strip("_")
