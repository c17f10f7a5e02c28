"""From log-ratios of pairs to an interval and a decision. Pure; Student's quantiles are SciPy's.

A pair's value is ``log(step time of the one arm / step time of the other)``; the overhead is ``exp(mean) - 1``.
Student's t interval over pairs is asked at a few looks that are fixed beforehand. The decision at a look uses the
interval whose error rate is ``ERROR_RATE`` divided by the number of looks (Bonferroni). So the chance that any look's
interval misses the true overhead, and with it the chance of a wrong decision, is at most ``ERROR_RATE``, however the
looks depend on each other; half of that on either side. What is reported is the plain 95 % interval over all pairs
measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

#: Chance of a wrong decision that the sequential rule admits over all looks and both directions.
ERROR_RATE = 0.05

#: Level of the interval that is reported.
CONFIDENCE = 0.95

#: The least pairs from which an interval is made.
LEAST_PAIRS = 2


class Decision(StrEnum):
    """What the pairs say about the budget."""

    HOLDS = "holds"
    FAILS = "fails"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of an overhead as fractions (0.1: ten per cent), and their confidence level."""

    lower: float
    upper: float
    level: float

    def contains(self, overhead: float) -> bool:
        return self.lower <= overhead <= self.upper


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a number of pairs say: ``overhead`` is a fraction of the default arm's step time.

    ``interval`` is the 95 % interval; ``strict`` the wider one by which the sequential rule decides. ``spread`` is the
    standard deviation of the pairs' log-ratios.
    """

    pairs: int
    overhead: float
    interval: Interval
    strict: Interval
    spread: float

    def decide(self, budget: float) -> Decision:
        """Holds where the strict interval lies below the budget, fails where it lies above."""
        if self.strict.upper < budget:
            return Decision.HOLDS
        return Decision.FAILS if self.strict.lower > budget else Decision.INCONCLUSIVE


def estimate(log_ratios: Sequence[float], looks: int) -> Estimate:
    """The overhead from at least two pairs, where the sequential rule has ``looks`` looks in all.

    Raises ``ValueError`` for fewer pairs or a value that is not finite.
    """
    if len(log_ratios) < LEAST_PAIRS or not all(map(math.isfinite, log_ratios)):
        raise ValueError(f"{len(log_ratios)} pairs; at least {LEAST_PAIRS} finite log-ratios are needed")
    pairs = len(log_ratios)
    mean, spread = statistics.fmean(log_ratios), statistics.stdev(log_ratios)

    def interval(level: float) -> Interval:
        half = _quantile(level, pairs - 1) * spread / math.sqrt(pairs)
        return Interval(math.expm1(mean - half), math.expm1(mean + half), level)

    return Estimate(
        pairs=pairs,
        overhead=math.expm1(mean),
        interval=interval(CONFIDENCE),
        strict=interval(1 - ERROR_RATE / looks),
        spread=spread,
    )


def noise_floor(spread: float, pairs: int, looks: int) -> float:
    """The least overhead, as a fraction, that ``pairs`` pairs with this ``spread`` can tell from none at the last
    look.
    """
    return math.expm1(_quantile(1 - ERROR_RATE / looks, pairs - 1) * spread / math.sqrt(pairs))


@cache
def _quantile(level: float, freedom: int) -> float:
    """Half the width of Student's t interval of a confidence level, in standard errors."""
    from scipy import stats  # noqa: PLC0415 - loaded when something is measured

    return float(stats.t.ppf((1 + level) / 2, freedom))
