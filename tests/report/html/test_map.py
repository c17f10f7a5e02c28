"""The map's colours and tensors, on trajectories whose every bit was chosen."""

from __future__ import annotations

from pathlib import Path

from tests.trajectory.synthetic import Launch, changed, moments
from validator.comparison import resume_pairs
from validator.report.html.map import Map, draw_map
from validator.report.html.states import State, Strip, every_moment, states, unexercised
from validator.report.html.tensors import Shelf
from validator.report.model import WaivedFinding
from validator.trajectory.groups import Group, Moment, Phase
from validator.trajectory.reader import Trajectory

_GROUPS = tuple(Group)


def _drawn(expected: Trajectory, observed: Trajectory, shelf: Shelf) -> Map:
    strip = Strip("observed", expected, observed, every_moment(expected, observed))
    drawn = draw_map("it", "It", "expected", [strip], shelf)
    assert drawn is not None
    return drawn


def test_one_leaf_is_one_cell_with_its_tensor(tmp_path: Path) -> None:
    expected = Launch().seal(tmp_path / "a")
    observed = changed((1, Moment(2), Group.PARAMETERS, "decoder.bias")).seal(tmp_path / "b")
    shelf = Shelf()
    drawn = _drawn(expected, observed, shelf)
    assert [str(column.first) for column in drawn.columns] == ["setup:0", "entry:0", "step:1", "step:2", "step:3"]
    assert [row.ranks for row in drawn.rows] == ["0", "1"]
    group = drawn.groups.index(Group.PARAMETERS)
    assert [tuple(map(int, place)) for place in zip(*(drawn.states == State.DIFFERENT).nonzero(), strict=True)] == [
        (1, 3, group)
    ]
    (cell,) = drawn.cells.values()
    assert (cell.moment, cell.rank, cell.differing, cell.leaves) == ("step:2", 1, 1, 3)
    assert shelf.leaves == [("decoder.bias", "float32[4]")]
    (tensor,) = cell.tensors
    record = expected.leaves(1, Moment(2), Group.PARAMETERS)
    assert tensor.expected == record.leaf(1).hex()
    assert tensor.observed == observed.leaves(1, Moment(2), Group.PARAMETERS).leaf(1).hex()
    assert drawn.find("step:2", "parameters") == (group, 3)
    assert drawn.find("step:1", "parameters") is None
    assert drawn.start == (group, 3)


def test_a_group_that_is_nowhere_is_absent_and_one_that_is_gone_is_different(tmp_path: Path) -> None:
    expected = Launch().seal(tmp_path / "a")
    without = Launch(
        names=lambda rank, moment, group: () if group is Group.RNG else Launch().names(rank, moment, group)
    )
    observed = without.seal(tmp_path / "b")
    found = states(Strip("b", expected, observed, every_moment(expected, observed)))
    assert (found[:, :, _GROUPS.index(Group.RNG)] == State.DIFFERENT).all()
    assert (found[:, :2, _GROUPS.index(Group.GRADIENTS)] == State.ABSENT).all()
    assert (found[:, 2:, _GROUPS.index(Group.GRADIENTS)] == State.EQUAL).all()
    assert (found[:, :, _GROUPS.index(Group.BUFFERS)] == State.ABSENT).all()


def test_moments_that_only_one_side_has_are_different(tmp_path: Path) -> None:
    expected = Launch(moments=moments(3)).seal(tmp_path / "a")
    observed = Launch(moments=moments(2)).seal(tmp_path / "b")
    drawn = _drawn(expected, observed, Shelf())
    assert drawn.columns[-1].first == "step:3"
    assert (drawn.states[:, -1] == State.DIFFERENT).all()
    assert (drawn.states[:, :-1] != State.DIFFERENT).all()


def test_what_never_changes_is_equal_but_not_exercised(tmp_path: Path) -> None:
    still = Launch(
        contents={
            (rank, moment, Group.RNG, name): b"the same for ever"
            for rank in range(2)
            for moment in moments(3)
            for name in ("cuda", "numpy")
        }
    )
    expected, observed = still.seal(tmp_path / "a"), still.seal(tmp_path / "b")
    quiet = unexercised(expected)
    assert [_GROUPS[at] for at in quiet.all(axis=0).nonzero()[0]] == [Group.RNG]
    found = states(Strip("b", expected, observed, every_moment(expected, observed)), quiet)
    assert (found[:, :, _GROUPS.index(Group.RNG)] == State.UNEXERCISED).all()


def test_only_the_digest_that_the_waiver_names_is_waived(tmp_path: Path) -> None:
    reference = Launch(moments=moments(6)).seal(tmp_path / "a")
    wrong = dict.fromkeys([(1, moment, Group.RNG, "cuda") for moment in moments(6, 3)], b"other bits here!") | {
        (1, Moment(6), Group.RNG, "cuda"): b"other bits still"
    }
    segment = Launch(moments=moments(6, 3), contents=wrong).seal(tmp_path / "b")
    observed = segment.leaves(1, Moment(3, Phase.SETUP), Group.RNG).leaf(0).hex()
    known = WaivedFinding("resume", "rng/cuda", (1,), ("restore 3",), observed, "known", "https://x", "2027-01-01")
    strip = Strip("b", reference, segment, tuple(resume_pairs(reference, segment, 3)))
    column = states(strip, None, [known])[1, :, _GROUPS.index(Group.RNG)]
    assert [State(int(each)) for each in column] == [State.WAIVED] * 4 + [State.DIFFERENT]
    elsewhere = WaivedFinding("resume", "rng/cuda", (0,), ("restore 3",), observed, "known", "https://x", "2027-01-01")
    assert (states(strip, None, [elsewhere])[1, :, _GROUPS.index(Group.RNG)] == State.DIFFERENT).all()


def test_a_restore_is_compared_in_what_outlives_a_step_only(tmp_path: Path) -> None:
    reference = Launch(moments=moments(6)).seal(tmp_path / "a")
    segment = Launch(moments=moments(6, 3)).seal(tmp_path / "b")
    strip = Strip("b", reference, segment, tuple(resume_pairs(reference, segment, 3)))
    found = states(strip)
    assert (found[:, :2, _GROUPS.index(Group.METRICS)] == State.ABSENT).all()
    assert (found[:, :2, _GROUPS.index(Group.PARAMETERS)] == State.EQUAL).all()
    assert not (found == State.DIFFERENT).any()


def test_other_ranks_are_refused_with_a_sentence(tmp_path: Path) -> None:
    two, three = Launch().seal(tmp_path / "a"), Launch(ranks=3).seal(tmp_path / "b")
    assert Strip("three", two, three, ()).refusal == "three: the trajectories hold different ranks (2 and 3 of them)."
    assert Strip("two", two, two, ()).refusal == ""


def test_a_page_without_room_still_shows_every_cell(tmp_path: Path) -> None:
    expected = Launch().seal(tmp_path / "a")
    places = [
        (rank, Moment(2), Group.PARAMETERS, name) for rank in range(2) for name in ("decoder.bias", "decoder.weight")
    ]
    observed = changed(*places).seal(tmp_path / "b")
    drawn = _drawn(expected, observed, Shelf(room=1, cells=1))
    assert int((drawn.states == State.DIFFERENT).sum()) == 2
    (cell,) = drawn.cells.values()
    assert (cell.differing, len(cell.tensors)) == (2, 1)
