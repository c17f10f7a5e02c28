"""Waived differences are counted apart; everything else still fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.trajectory.synthetic import Launch, changed, first, moments, names_at
from validator.compare import compare
from validator.comparison import Divergence
from validator.trajectory.differences import Kind
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import LeafKey, leaf_digest
from validator.trajectory.reader import Trajectory

STEP_2 = Moment(2)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Trajectory:
    return Launch().seal(tmp_path_factory.mktemp("reference"))


def test_waived_differences_are_set_apart(reference: Trajectory, tmp_path: Path) -> None:
    places = [(1, STEP_2, Group.RNG, "cuda"), (1, Moment(3), Group.RNG, "cuda"), (0, Moment(3), Group.RNG, "cuda")]
    launch = changed(*places)
    wrong = leaf_digest(LeafKey("cuda", "float32", (4,)), b"other bits here!").hex()

    def waive(difference: Divergence) -> str | None:
        known = difference.name == "rng/cuda" and difference.rank == 1 and difference.observed == wrong
        return "known" if known else None

    found = compare(reference, launch.seal(tmp_path), waive=waive)
    assert [(each.rank, each.moment) for each in found.waived["known"]] == [(1, STEP_2), (1, Moment(3))]
    assert (first(found).rank, first(found).moment) == (0, Moment(3))
    assert [(s.moment, s.differing, s.ranks) for s in found.spread] == [(Moment(3), 1, 1)]
    assert compare(reference, changed(*places[:2]).seal(tmp_path / "b"), waive=waive).equal


def test_another_wrong_digest_is_not_waived(reference: Trajectory, tmp_path: Path) -> None:
    launch = changed((1, STEP_2, Group.RNG, "cuda"))
    found = compare(reference, launch.seal(tmp_path), waive=lambda each: "w" if each.observed == "00" * 16 else None)
    assert not found.equal
    assert found.waived == {}


def test_lengths_and_groups_cannot_be_waived(reference: Trajectory, tmp_path: Path) -> None:
    short = replace(names_at(Group.OPTIMIZER, ()), moments=moments(2))
    found = compare(reference, short.seal(tmp_path), waive=lambda _: "everything")
    assert [each.kind for each in found.differences] == [Kind.MISSING_GROUP, Kind.LENGTH]
    assert found.waived == {}
