"""Which of several differences of one moment is nearest to their cause: the order in which a step computes.

A step is given its batch, draws its random numbers and reads the gathered parameters; then come the losses, the
gradients from the loss backwards, their norm, the update, and last what is derived from it. Data position, generators
and schedule depend on no computed value, so that a difference there is a cause, never a consequence.
"""

from __future__ import annotations

from typing import Final

from validator.trajectory.groups import Group

#: Groups in the order in which a step reads or makes them. ``METRICS`` stands where the forward pass is done.
CAUSAL_ORDER: Final[tuple[Group, ...]] = (
    Group.BATCH,
    Group.DATA_POSITION,
    Group.RNG,
    Group.SCHEDULE,
    Group.GATHERED_PARAMETERS,
    Group.METRICS,
    Group.GRADIENTS,
    Group.OPTIMIZER,
    Group.MAIN_PARAMETERS,
    Group.PARAMETERS,
    Group.BUFFERS,
)
_STAGE = {group: index for index, group in enumerate(CAUSAL_ORDER)}

#: Metrics of the forward pass by how their names begin, the raw values of one rank before those reduced over ranks.
_FORWARD = ("tokens.", "lm_loss_sum.", "mtp_loss.")
_REDUCED = ("lm_loss", "training_loss")


def causal_rank(group: Group, leaf: str) -> tuple[float, int]:
    """Sort key of one leaf among the leaves of one moment; equal keys keep the order in which the leaves are stored.

    Router losses (``seq_load_balancing_loss.layer2``) come before the losses of the whole model; gradient norm,
    learning rate and the like belong after the gradients.
    """
    if group is not Group.METRICS:
        return (_STAGE[group], 0)
    if leaf in _REDUCED:
        return (_STAGE[group], 3)
    if leaf.startswith(_FORWARD):
        return (_STAGE[group], 0 if leaf.startswith("tokens.") else 2)
    if ".layer" in leaf:
        return (_STAGE[group], 1)
    return (_STAGE[Group.GRADIENTS] + 0.5, 0)
