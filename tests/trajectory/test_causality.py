"""Of several differences at one moment, the one that a step computes first is the divergence."""

from __future__ import annotations

from pathlib import Path

from tests.trajectory.synthetic import Launch, changed
from validator.compare import compare
from validator.trajectory.causality import CAUSAL_ORDER, causal_rank
from validator.trajectory.groups import Group, Moment

WEIGHT = "decoder.weight"
STEP_2 = Moment(2)


def test_every_group_has_its_place() -> None:
    assert set(CAUSAL_ORDER) == set(Group)


def test_a_step_goes_from_its_batch_over_the_losses_and_gradients_to_the_update() -> None:
    order = [
        (Group.BATCH, "micro_batch0/tokens"),
        (Group.RNG, "model-parallel-rng"),
        (Group.METRICS, "seq_load_balancing_loss.layer2"),
        (Group.METRICS, "lm_loss_sum.0"),
        (Group.METRICS, "lm_loss"),
        (Group.GRADIENTS, WEIGHT),
        (Group.METRICS, "grad_norm"),
        (Group.OPTIMIZER, f"{WEIGHT}/exp_avg"),
        (Group.MAIN_PARAMETERS, WEIGHT),
        (Group.PARAMETERS, WEIGHT),
    ]
    ranks = [causal_rank(group, leaf) for group, leaf in order]
    assert ranks == sorted(ranks)
    assert len(set(ranks)) == len(ranks)


def test_a_peers_gradient_comes_before_what_followed_from_it_on_rank_0(tmp_path: Path) -> None:
    reference = Launch().seal(tmp_path / "reference")
    spread = ((0, STEP_2, Group.PARAMETERS, WEIGHT), (1, STEP_2, Group.GRADIENTS, WEIGHT))
    found = compare(reference, changed(*spread).seal(tmp_path / "other"))
    assert found.first is not None
    assert (found.first.rank, found.first.group) == (1, Group.GRADIENTS)
    assert found.differences[0].rank == 0


def test_what_is_waived_is_not_the_divergence(tmp_path: Path) -> None:
    reference = Launch().seal(tmp_path / "reference")
    other = changed((0, STEP_2, Group.GRADIENTS, WEIGHT), (1, STEP_2, Group.PARAMETERS, WEIGHT))
    found = compare(
        reference,
        other.seal(tmp_path / "other"),
        waive=lambda each: "known" if each.group is Group.GRADIENTS else None,
    )
    assert found.first is not None
    assert (found.first.rank, found.first.group) == (1, Group.PARAMETERS)
