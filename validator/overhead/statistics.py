"""From log-ratios of pairs to an interval and a decision. Pure; Student's quantiles are SciPy's.

A pair's value is ``log(step time of the one arm / step time of the other)``; the overhead is ``exp(mean) - 1``.
Student's t interval over pairs is asked at two looks that are fixed beforehand, and measuring stops at the first one
whose interval lies on one side of the budget. Stopping there chooses among intervals: the plain 95 % interval would
miss the truth too often (in 8 % of measurements where the truth is near the budget). So both looks take the same
higher level (Pocock, Biometrika 64, 1977, 191-199), at which the chance that the interval of *either* look misses the
true overhead is ``ERROR_RATE``. Pocock's constant, 2.94 % a look, is for a known variance; with Student's intervals
over few pairs, and looks of which the second has up to four times the pairs of the first, ``LOOK_ERROR`` is 2.65 %:
the two miss with 4.8 % for looks after 4 and 8 normal log-ratios, and with 5.0 % after 10 and 40 (300,000
simulations). The one interval that is reported is the one that decided: it covers the truth with 95 to 97.35 %
probability, and a wrong decision in either direction has at most the probability ``ERROR_RATE``.
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

#: Chance that the interval of one of two looks misses the truth.
LOOK_ERROR = 0.0265

#: The most looks that the rule is made for.
MOST_LOOKS = 2

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

    ``interval`` covers the truth with 95 % probability at whichever look measuring stops; ``look_level`` is the level
    of Student's interval at this look that this takes. ``spread`` is the standard deviation of the pairs' log-ratios.
    """

    pairs: int
    overhead: float
    interval: Interval
    look_level: float
    spread: float

    def decide(self, budget: float) -> Decision:
        """Holds where the interval lies below the budget, fails where it lies above."""
        if self.interval.upper < budget:
            return Decision.HOLDS
        return Decision.FAILS if self.interval.lower > budget else Decision.INCONCLUSIVE


def level_of_look(look: int, looks: int) -> float:
    """The level of Student's interval at the ``look``-th (from 1) of ``looks`` planned ones.

    Raises ``ValueError`` for more than ``MOST_LOOKS``.
    """
    if not 1 <= look <= looks <= MOST_LOOKS:
        raise ValueError(f"look {look} of {looks}; the rule is made for at most {MOST_LOOKS}")
    return 1 - (ERROR_RATE if looks == 1 else LOOK_ERROR)


def estimate(log_ratios: Sequence[float], look: int = 1, looks: int = 1) -> Estimate:
    """The overhead from at least two pairs, at the ``look``-th of ``looks`` planned looks.

    Raises ``ValueError`` for fewer pairs or a value that is not finite.
    """
    if len(log_ratios) < LEAST_PAIRS or not all(map(math.isfinite, log_ratios)):
        raise ValueError(f"{len(log_ratios)} pairs; at least {LEAST_PAIRS} finite log-ratios are needed")
    pairs = len(log_ratios)
    mean, spread = statistics.fmean(log_ratios), statistics.stdev(log_ratios)
    level = level_of_look(look, looks)
    half = _quantile(level, pairs - 1) * spread / math.sqrt(pairs)
    return Estimate(
        pairs=pairs,
        overhead=math.expm1(mean),
        interval=Interval(math.expm1(mean - half), math.expm1(mean + half), 1 - ERROR_RATE),
        look_level=level,
        spread=spread,
    )


def noise_floor(spread: float, pairs: int, looks: int) -> float:
    """The least overhead, as a fraction, that ``pairs`` pairs with this ``spread`` can tell from none at the last
    look.
    """
    return math.expm1(_quantile(level_of_look(looks, looks), pairs - 1) * spread / math.sqrt(pairs))


@cache
def _quantile(level: float, freedom: int) -> float:
    """Half the width of Student's t interval of a confidence level, in standard errors."""
    from scipy import stats  # noqa: PLC0415 - loaded when something is measured

    return float(stats.t.ppf((1 + level) / 2, freedom))
