"""What a restored segment is compared with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.trajectory.synthetic import Launch, first, moments
from validator.compare import compare, resume_pairs
from validator.comparison import MomentPair
from validator.trajectory.differences import Kind
from validator.trajectory.groups import PERSISTENT_GROUPS, Group, Moment, Phase


def restored(steps: int = 5, start: int = 3) -> Launch:
    """A segment that restored ``start``, trained to ``steps`` and was killed."""
    return Launch(moments=moments(steps, start), ended=False)


def test_a_segment_that_resumes_well_is_equal(tmp_path: Path) -> None:
    reference = Launch(moments=moments(5)).seal(tmp_path / "reference")
    segment = restored().seal(tmp_path / "segment")
    pairs = resume_pairs(reference, segment, 3)
    assert pairs == [
        MomentPair(Moment(3), Moment(3, Phase.SETUP), PERSISTENT_GROUPS),
        MomentPair(Moment(3), Moment(3, Phase.ENTRY), PERSISTENT_GROUPS),
        MomentPair(Moment(4), Moment(4)),
        MomentPair(Moment(5), Moment(5)),
    ]
    found = compare(reference, segment, pairs)
    assert found.equal
    assert (found.moments_compared, found.leaves_compared) == (4, 2 * (2 * 7 + 2 * 14))


def test_a_wrong_leaf_right_after_the_restore_is_named_there(tmp_path: Path) -> None:
    reference = Launch(moments=moments(5)).seal(tmp_path / "reference")
    place = (1, Moment(3, Phase.SETUP), Group.OPTIMIZER, "decoder.weight.exp_avg")
    segment = replace(restored(), contents={place: b"other bits here!"}).seal(tmp_path / "segment")
    found = compare(reference, segment, resume_pairs(reference, segment, 3))
    assert (first(found).moment, first(found).expected_moment) == (Moment(3, Phase.SETUP), Moment(3))
    assert first(found).name == "optimizer/decoder.weight.exp_avg"
    assert [(str(s.moment), s.differing, s.leaves, s.ranks) for s in found.spread] == [("setup:3", 1, 2, 1)]


def test_a_fresh_segment_is_compared_moment_by_moment(tmp_path: Path) -> None:
    reference = Launch(moments=moments(5)).seal(tmp_path / "reference")
    segment = restored(4, 0).seal(tmp_path / "segment")
    assert resume_pairs(reference, segment, 0) == [MomentPair(moment, moment) for moment in moments(4)]
    assert compare(reference, segment, resume_pairs(reference, segment, 0)).equal


def test_a_segment_that_stopped_before_its_last_step_is_no_success(tmp_path: Path) -> None:
    reference = Launch(moments=moments(6)).seal(tmp_path / "reference")
    segment = restored(4, 3).seal(tmp_path / "segment")
    found = compare(reference, segment, resume_pairs(reference, segment, 3, 5))
    assert [(each.kind, each.moment) for each in found.differences] == [(Kind.LENGTH, Moment(5))]
    assert resume_pairs(reference, segment, 3, 5)[-1] == MomentPair(Moment(5), Moment(5))


def test_a_segment_that_did_not_train_is_no_success(tmp_path: Path) -> None:
    reference = Launch(moments=moments(5)).seal(tmp_path / "reference")
    segment = restored(3, 3).seal(tmp_path / "segment")
    found = compare(reference, segment, resume_pairs(reference, segment, 3))
    assert (first(found).kind, first(found).moment) == (Kind.LENGTH, Moment(4))
