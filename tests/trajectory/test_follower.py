from __future__ import annotations

from pathlib import Path

import pytest

from tests.trajectory.synthetic import Launch, moments
from validator.errors import TrajectoryError
from validator.trajectory.follower import Follower
from validator.trajectory.groups import Moment


def test_a_directory_that_is_not_there_yet_has_no_moments(tmp_path: Path) -> None:
    assert Follower(tmp_path / "later", 2).poll() == []


def test_a_moment_counts_once_all_ranks_have_it(tmp_path: Path) -> None:
    follower = Follower(tmp_path, 2)
    Launch().write_rank(tmp_path, 0)
    assert follower.poll() == []
    assert follower.ending(0) == {"layout": {"rank": 0, "tp": 0}}
    assert follower.ending(1) is None
    Launch().write_rank(tmp_path, 1)
    assert follower.poll() == list(moments(3))
    assert follower.poll() == []
    assert follower.moments == moments(3)


def test_it_says_what_the_sealed_trajectory_says(tmp_path: Path) -> None:
    follower = Follower(tmp_path, 2)
    trajectory = Launch().seal(tmp_path)
    for moment in follower.poll():
        assert follower.moment_digest(moment) == trajectory.moment_digest(moment)
        for rank in (0, 1):
            assert follower.groups(rank, moment) == trajectory.groups(rank, moment)
            assert follower.metrics(rank, moment) == trajectory.metrics(rank, moment)
            assert follower.rank_digest(rank, moment) == trajectory.rank_digest(rank, moment)


def test_the_file_may_arrive_byte_by_byte(tmp_path: Path) -> None:
    Launch(ranks=1).write(tmp_path / "whole")
    whole = (tmp_path / "whole" / "rank-00000.jsonl").read_bytes()
    growing = tmp_path / "rank-00000.jsonl"
    follower = Follower(tmp_path, 1)
    seen: list[Moment] = []
    with growing.open("wb", buffering=0) as file:
        for index in range(len(whole)):
            file.write(whole[index : index + 1])
            seen += follower.poll()
    assert seen == list(moments(3))


def test_what_no_writer_wrote_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "rank-00000.jsonl").write_text("Traceback (most recent call last):\n")
    with pytest.raises(TrajectoryError, match="edited"):
        Follower(tmp_path, 1).poll()
