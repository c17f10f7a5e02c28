"""Leaves that the host picks beforehand and recomputes."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.execute.launching import request_in
from tests.trajectory.synthetic import Launch
from validator.check.samples import SAMPLES, choose, discard, examine, expected_bytes
from validator.execute.request import Sample
from validator.trajectory.groups import PERSISTENT_GROUPS, Group, Moment, Phase
from validator.trajectory.leaves import LeafKey


def test_picks_are_different_and_within_the_launch() -> None:
    for seed in range(200):
        chosen = choose(Random(seed), ranks=2, restored=3, last=5)  # noqa: S311
        assert len({sample.stem for sample in chosen}) == len(chosen) == SAMPLES
        for sample in chosen:
            moment = Moment.parse(sample.moment)
            assert sample.rank in {0, 1}
            assert moment in {Moment(3, Phase.SETUP), Moment(4), Moment(5)}
            if moment.phase is Phase.SETUP:
                assert sample.group in set(map(str, PERSISTENT_GROUPS))


def test_the_shortest_launch_has_enough_to_pick_from() -> None:
    assert len(choose(Random(0), ranks=1, restored=0, last=1)) == SAMPLES  # noqa: S311


def test_every_group_and_rank_is_picked_sooner_or_later() -> None:
    draw = Random(0)  # noqa: S311
    seen = {(s.rank, s.group) for _ in range(300) for s in choose(draw, ranks=4, restored=0, last=10)}
    assert len(seen) == 4 * (len(PERSISTENT_GROUPS) + 2)


def test_the_size_of_a_leaf_follows_from_dtype_and_shape() -> None:
    assert expected_bytes(LeafKey("a", "bfloat16", (3, 5))) == 30
    assert expected_bytes(LeafKey("a", "int64", ())) == 8
    assert expected_bytes(LeafKey("a", "bytes", ())) is None


def test_raw_bytes_are_removed(tmp_path) -> None:  # type: ignore[no-untyped-def]
    samples = tmp_path / "samples"
    discard(samples)  # nothing was handed over
    samples.mkdir()
    (samples / "rank-00000.step-1.rng.bin").write_bytes(b"x")
    discard(samples)
    assert not samples.exists()


def test_a_leafs_name_is_quoted_briefly(tmp_path: Path) -> None:
    name = "weight\x1b[2J" + "x" * 10_000
    names = lambda _rank, _moment, group: (name,) if group is Group.RNG else ()  # noqa: E731
    trajectory = Launch(ranks=1, names=names).seal(tmp_path / "trajectory")
    sample = Sample(0, "step:1", "rng", 0)
    good, (problem,) = examine(trajectory, request_in(tmp_path / "elsewhere"), [sample])
    assert good == 0
    assert problem.startswith("rank 0, step:1, rng: the launch handed over no raw bytes of weight\\x1b[2Jxxx")
    assert len(problem) < 400
