"""What a comparison says of names that a launch chose."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.report.hostile import hostile_text
from validator.comparison import Divergence
from validator.trajectory.differences import Kind
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import LeafKey

PLAIN = LeafKey("decoder.weight", "float32", (4,))


def divergence(kind: Kind, leaf: LeafKey, observed: LeafKey) -> Divergence:
    return Divergence(kind, Moment(2), Moment(2), 1, Group.RNG, leaf, observed, "aa", "bb")


def test_a_plain_name_stands_as_it_is() -> None:
    found = divergence(Kind.LEAF, PLAIN, PLAIN)
    assert found.sentence == "step:2, rank 1: rng/decoder.weight has digest bb, expected aa"


@pytest.mark.parametrize("kind", [Kind.LEAF, Kind.RENAMED, Kind.MISSING_LEAF])
def test_a_sentence_is_short_however_long_the_names_are(kind: Kind) -> None:
    endless = LeafKey("first" + "x" * 10**6 + "last", "y" * 10**6, (1,) * 1000, "z" * 10**6)
    for leaf, observed in ((endless, PLAIN), (PLAIN, endless), (endless, endless)):
        assert len(divergence(kind, leaf, observed).sentence) < 1500
    assert "first" in divergence(kind, endless, PLAIN).sentence
    assert divergence(kind, endless, PLAIN).name == f"rng/{endless.name}"  # as waivers have it


@given(hostile_text, hostile_text)
def test_a_sentence_is_one_line_that_does_nothing(name: str, other: str) -> None:
    leaf, observed = LeafKey(name, other, (), other), LeafKey(other, name, (), name)
    for kind in (Kind.LEAF, Kind.RENAMED):
        assert divergence(kind, leaf, observed).sentence.isprintable()
