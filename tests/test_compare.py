from __future__ import annotations

import math
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trajectory.synthetic import NAMES, Launch, changed, first, moments, names_at
from validator.compare import LISTED, compare
from validator.comparison import Divergence, MomentPair
from validator.trajectory.differences import Kind
from validator.trajectory.groups import PERSISTENT_GROUPS, Group, Moment, Phase
from validator.trajectory.leaves import LeafKey, leaf_digest
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory

WEIGHT = "decoder.weight"
STEP_2 = Moment(2)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Trajectory:
    return Launch().seal(tmp_path_factory.mktemp("reference"))


def test_equal_launches_are_equal_in_all_their_leaves(reference: Trajectory, tmp_path: Path) -> None:
    found = compare(reference, Launch().seal(tmp_path))
    assert found.equal
    assert found.first is None
    assert found.spread == ()
    # Persistent groups have 3 + 2 + 2 leaves a rank, a step has 5 + 2 metrics more.
    assert (found.moments_compared, found.leaves_compared) == (5, 2 * (2 * 7 + 3 * 14))


def test_one_leaf_is_found_with_both_digests(reference: Trajectory, tmp_path: Path) -> None:
    found = compare(reference, changed((1, STEP_2, Group.PARAMETERS, WEIGHT)).seal(tmp_path))
    assert not found.equal
    key = LeafKey(WEIGHT, "float32", (4,))
    assert first(found) == Divergence(
        Kind.LEAF,
        STEP_2,
        STEP_2,
        1,
        Group.PARAMETERS,
        key,
        key,
        leaf_digest(key, b"1 2 parameters decoder.weight").hex(),
        leaf_digest(key, b"other bits here!").hex(),
    )
    (spread,) = found.spread
    assert (spread.moment, spread.group, spread.differing, spread.leaves, spread.ranks) == (
        STEP_2,
        Group.PARAMETERS,
        1,
        3,
        1,
    )
    assert first(found).name == "parameters/decoder.weight"
    assert "step:2, rank 1: parameters/decoder.weight" in first(found).sentence


def test_the_first_is_by_moment_then_rank_then_group_then_leaf(reference: Trajectory, tmp_path: Path) -> None:
    ordered = [
        (1, Moment(0, Phase.SETUP), Group.RNG, "numpy"),
        (0, Moment(1), Group.OPTIMIZER, "decoder.bias.exp_avg"),
        (1, Moment(1), Group.GRADIENTS, "decoder.bias"),
        (1, Moment(1), Group.GRADIENTS, "embedding.weight"),
        (1, Moment(1), Group.PARAMETERS, WEIGHT),
        (0, Moment(3), Group.BATCH, "tokens"),
    ]
    found = compare(reference, changed(*reversed(ordered)).seal(tmp_path))
    assert [(each.rank, each.moment, each.group, each.leaf and each.leaf.name) for each in found.differences] == ordered


def test_the_spread_lists_every_group_of_a_moment_and_counts_ranks(reference: Trajectory, tmp_path: Path) -> None:
    places = [(rank, STEP_2, Group.PARAMETERS, name) for rank in (0, 1) for name in NAMES[Group.PARAMETERS][:2]]
    found = compare(reference, changed(*places, (0, STEP_2, Group.RNG, "cuda")).seal(tmp_path))
    rows = [(str(s.moment), s.group, s.differing, s.leaves, s.ranks) for s in found.spread]
    assert rows == [("step:2", Group.PARAMETERS, 4, 6, 2), ("step:2", Group.RNG, 1, 2, 1)]


def test_metrics_come_first_with_decimals_bits_and_ulps(reference: Trajectory, tmp_path: Path) -> None:
    one_up = math.nextafter(6.0, 7)
    launch = replace(
        changed((0, STEP_2, Group.PARAMETERS, WEIGHT)),
        metrics=lambda rank, moment: (
            {**Launch().metrics(rank, moment), "loss": Metric.of(one_up)}
            if moment == STEP_2
            else Launch().metrics(rank, moment)
        ),
    )
    found = compare(reference, launch.seal(tmp_path))
    metric = first(found).metric
    assert metric is not None
    assert (first(found).group, metric.name, metric.ulps) == (Group.METRICS, "loss", 1)
    assert (metric.expected.value, metric.observed.value) == (6.0, one_up)
    assert (metric.expected.bits, metric.observed.bits) == ("4018000000000000", "4018000000000001")
    assert "6.0 (float64 0x4018000000000000)" in first(found).sentence
    assert "1 ULP" in first(found).sentence
    assert {spread.group for spread in found.spread} == {Group.METRICS, Group.PARAMETERS}


def test_the_sign_of_a_zero_metric_is_a_difference(tmp_path: Path) -> None:
    launches = [Launch(metrics=lambda *_, v=value: {"loss": Metric.of(v)}) for value in (0.0, -0.0)]
    found = compare(launches[0].seal(tmp_path / "a"), launches[1].seal(tmp_path / "b"))
    metric = first(found).metric
    assert metric is not None
    assert metric.ulps == 1


def test_two_nan_payloads_differ_without_ulps(tmp_path: Path) -> None:
    launches = [Launch(metrics=lambda *_, b=bits: {"loss": Metric("float32", b)}) for bits in ("7fc00000", "7fc00001")]
    found = compare(launches[0].seal(tmp_path / "a"), launches[1].seal(tmp_path / "b"))
    metric = first(found).metric
    assert metric is not None
    assert metric.ulps is None


def test_equal_nan_is_no_false_alarm(tmp_path: Path) -> None:
    launch = Launch(metrics=lambda *_: {"loss": Metric.of(math.nan)})
    assert compare(launch.seal(tmp_path / "a"), launch.seal(tmp_path / "b")).equal


def test_a_renamed_leaf_is_told_from_a_changed_one(tmp_path: Path) -> None:
    content = {(1, STEP_2, Group.PARAMETERS, name): b"the same bits..." for name in (WEIGHT, "decoder.kernel")}
    renamed = replace(
        names_at(Group.PARAMETERS, ("decoder.kernel", "decoder.bias", "embedding.weight")), contents=content
    )
    found = compare(Launch(contents=content).seal(tmp_path / "a"), renamed.seal(tmp_path / "b"))
    (difference,) = found.differences
    assert difference.kind is Kind.RENAMED
    assert difference.expected == difference.observed
    assert difference.leaf is not None
    assert difference.observed_leaf is not None
    assert (difference.leaf.name, difference.observed_leaf.name) == (WEIGHT, "decoder.kernel")
    assert "is now called decoder.kernel" in difference.sentence
    assert found.only_names
    assert not found.equal


def test_a_leaf_renamed_and_changed_is_missing_and_extra(reference: Trajectory, tmp_path: Path) -> None:
    launch = names_at(Group.PARAMETERS, ("decoder.kernel", "decoder.bias", "embedding.weight"))
    found = compare(reference, launch.seal(tmp_path))
    kinds = [(each.kind, each.leaf and each.leaf.name) for each in found.differences]
    assert kinds == [(Kind.MISSING_LEAF, WEIGHT), (Kind.EXTRA_LEAF, "decoder.kernel")]
    assert (first(found).observed, found.differences[1].expected) == ("", "")
    assert not found.only_names
    assert found.spread[0].differing == 2


def test_leaves_in_another_order_are_reordered(reference: Trajectory, tmp_path: Path) -> None:
    launch = names_at(Group.PARAMETERS, tuple(reversed(NAMES[Group.PARAMETERS])))
    found = compare(reference, launch.seal(tmp_path))
    assert [each.kind for each in found.differences] == [Kind.REORDERED]
    assert found.only_names


def test_an_added_leaf_does_not_hide_the_others(reference: Trajectory, tmp_path: Path) -> None:
    launch = replace(
        names_at(Group.PARAMETERS, ("new", *NAMES[Group.PARAMETERS])),
        contents={(1, STEP_2, Group.PARAMETERS, "embedding.weight"): b"other bits here!"},
    )
    found = compare(reference, launch.seal(tmp_path))
    kinds = [(each.kind, each.leaf and each.leaf.name) for each in found.differences]
    assert kinds == [(Kind.LEAF, "embedding.weight"), (Kind.EXTRA_LEAF, "new")]


@pytest.mark.parametrize(("kind", "swap"), [(Kind.MISSING_GROUP, False), (Kind.EXTRA_GROUP, True)])
def test_a_group_on_one_side_only(reference: Trajectory, tmp_path: Path, kind: Kind, swap: bool) -> None:
    other = names_at(Group.OPTIMIZER, ()).seal(tmp_path)
    found = compare(other, reference) if swap else compare(reference, other)
    assert (first(found).kind, first(found).group, first(found).leaf) == (kind, Group.OPTIMIZER, None)
    (spread,) = found.spread
    assert (spread.differing, spread.leaves, spread.ranks) == (2, 2, 1)


def test_a_changed_shape_with_equal_bytes_is_a_changed_leaf(reference: Trajectory, tmp_path: Path) -> None:
    class Reshaped(Launch):
        def key(self, name: str) -> LeafKey:
            return LeafKey(name, "float32", (2, 2) if name == "tokens" else (4,))

    found = compare(reference, Reshaped().seal(tmp_path))
    assert {each.kind for each in found.differences} == {Kind.LEAF}
    assert "was float32[4] and is float32[2, 2]" in first(found).sentence


@pytest.mark.parametrize("swap", [False, True])
def test_a_shorter_trajectory_diverges_in_length(reference: Trajectory, tmp_path: Path, swap: bool) -> None:
    short = Launch(moments=moments(2)).seal(tmp_path)
    found = compare(short, reference) if swap else compare(reference, short)
    assert (first(found).kind, first(found).moment, first(found).rank) == (Kind.LENGTH, Moment(3), None)
    assert "step:3 is in only one of the two" in first(found).sentence
    assert found.moments_compared == 4


def test_a_leaf_before_the_missing_moment_comes_first(reference: Trajectory, tmp_path: Path) -> None:
    launch = replace(changed((1, STEP_2, Group.RNG, "cuda")), moments=moments(2))
    assert [each.kind for each in compare(reference, launch.seal(tmp_path)).differences] == [Kind.LEAF, Kind.LENGTH]


def test_other_ranks_are_refused(reference: Trajectory, tmp_path: Path) -> None:
    found = compare(reference, Launch(ranks=3).seal(tmp_path))
    assert found.refused is not None
    assert "2 and 3 ranks" in found.refused
    assert not found.equal
    assert found.first is None


def test_a_launch_that_lost_a_rank_is_refused(reference: Trajectory, tmp_path: Path) -> None:
    Launch().write_rank(tmp_path, 0)
    from validator.trajectory.seal import seal

    found = compare(reference, seal(tmp_path, {}, {}))
    assert found.refused is not None
    assert "Rank 1" in found.refused


def test_another_algorithm_is_refused(reference: Trajectory, tmp_path: Path) -> None:
    other = Launch().seal(tmp_path)
    other.algorithm = "mix64/1"
    found = compare(reference, other)
    assert found.refused is not None
    assert "xxh3-128/1 and mix64/1" in found.refused


def test_comparing_nothing_is_never_equal(reference: Trajectory, tmp_path: Path) -> None:
    empty = [Launch(moments=(), ended=False).seal(tmp_path / name) for name in ("a", "b")]
    assert not compare(*empty).equal
    assert not compare(reference, reference, pairs=[]).equal
    only = [MomentPair(STEP_2, STEP_2, (Group.SCHEDULE,))]  # a group that neither has
    assert not compare(reference, reference, pairs=only).equal


def test_more_differences_than_are_listed_are_all_counted(reference: Trajectory, tmp_path: Path) -> None:
    names = [f"layer.{index}" for index in range(LISTED)]
    places = [(rank, moment, name) for rank in (0, 1) for moment in moments(3) for name in names]
    contents = {(rank, moment, Group.PARAMETERS, name): b"x" for rank, moment, name in places}
    expected = Launch(names=lambda _rank, _moment, group: names if group is Group.PARAMETERS else ())
    observed = replace(expected, contents=contents).seal(tmp_path / "b")
    found = compare(expected.seal(tmp_path / "a"), observed)
    assert len(found.differences) == LISTED
    assert [(s.moment, s.differing, s.leaves, s.ranks) for s in found.spread] == [
        (moment, 2 * LISTED, 2 * LISTED, 2) for moment in moments(3)
    ]


PLACES = [
    (rank, moment, group, name)
    for rank in (0, 1)
    for moment in moments(3)
    for group in (PERSISTENT_GROUPS if moment.phase is not Phase.STEP else Group)
    for name in NAMES.get(group, ())
]


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(PLACES), max_size=12))
def test_exactly_what_was_changed_is_found(
    reference: Trajectory, tmp_path_factory: pytest.TempPathFactory, places: set[tuple[int, Moment, Group, str]]
) -> None:
    observed = changed(*places).seal(tmp_path_factory.mktemp("observed"))
    found = compare(reference, observed)
    at = [(each.rank, each.moment, each.group, each.leaf.name) for each in found.differences if each.leaf]
    assert at == [place for moment in moments(3) for place in PLACES if place[1] == moment and place in places]
    assert found.equal is (not places)
    # Counting in blocks and asking leaf by leaf are two ways to one answer.
    assert compare(reference, observed, waive=lambda _: None).spread == found.spread
    assert sum(spread.differing for spread in found.spread) == len(places)


def test_no_false_alarm_in_1000_comparisons_of_equal_runs(reference: Trajectory, tmp_path: Path) -> None:
    other = Launch().seal(tmp_path)
    assert all(compare(reference, other).equal for _ in range(1000))


def test_swapped_rows_are_seen(tmp_path: Path) -> None:
    rows = struct.pack("<2f", 1, 2), struct.pack("<2f", 3, 4)
    place = (0, STEP_2, Group.PARAMETERS, WEIGHT)
    left = Launch(contents={place: rows[0] + rows[1]}).seal(tmp_path / "a")
    right = Launch(contents={place: rows[1] + rows[0]}).seal(tmp_path / "b")
    assert first(compare(left, right)).name == "parameters/decoder.weight"
