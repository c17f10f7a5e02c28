"""Leaves that the host picks beforehand and recomputes."""

from __future__ import annotations

from random import Random

from validator.check.samples import SAMPLES, choose, discard, expected_bytes
from validator.trajectory.groups import PERSISTENT_GROUPS, Moment, Phase
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
