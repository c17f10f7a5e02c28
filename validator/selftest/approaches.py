"""What comparing logged losses would have said of two trajectories. Pure.

Two ways in use elsewhere: the language-model loss of every step at 5 decimals, as golden files of training frameworks
hold it, and the same loss bit for bit.
"""

from __future__ import annotations

from validator.selftest.outcome import Approaches
from validator.trajectory.groups import Moment, Phase
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory

LOGGED = "lm_loss"


def other_approaches(expected: Trajectory, observed: Trajectory) -> Approaches:
    """Which of the two would have seen a difference, at the steps that both trajectories have."""
    exact = five = False
    for moment in observed.moments:
        if moment.phase is not Phase.STEP or moment not in expected.moments:
            continue
        one, other = _logged(expected, moment), _logged(observed, moment)
        if one is None or other is None:
            continue
        exact |= one.bits != other.bits
        five |= f"{one.value:.5f}" != f"{other.value:.5f}"
    return Approaches(five, exact)


def _logged(trajectory: Trajectory, moment: Moment) -> Metric | None:
    """The loss as the last rank that has one logs it."""
    for rank in reversed(trajectory.ranks):
        if (metric := trajectory.metrics(rank, moment).get(LOGGED)) is not None:
            return metric
    return None
