from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trajectory.synthetic import Launch, files_up_to, moments
from validator.errors import TrajectoryError
from validator.trajectory.follower import Follower
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import LeafKey, LeafTable
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory
from validator.trajectory.record import GroupRecord
from validator.trajectory.seal import seal
from validator.trajectory.writer import RankWriter

TABLE = LeafTable((LeafKey("a", "float32", (1,)), LeafKey("b", "float32", (1,))))
RECORD = GroupRecord(TABLE, bytes(range(32)))


def test_a_record_needs_one_digest_a_leaf() -> None:
    with pytest.raises(ValueError, match="31 bytes of digests for 2 leaves"):
        GroupRecord(TABLE, bytes(31))


def test_a_table_is_written_once(tmp_path: Path) -> None:
    with RankWriter(tmp_path, 0, 1) as writer:
        for step in (1, 2, 3):
            again = GroupRecord(LeafTable(TABLE.keys), RECORD.digests)  # equal, not the same object
            writer.append(Moment(step), {Group.PARAMETERS: RECORD, Group.BATCH: again}, {})
    text = (tmp_path / "rank-00000.jsonl").read_text()
    assert text.count('{"table":') == 1
    assert text.count('{"leaf":') == 2
    assert (tmp_path / "rank-00000.leaves").read_bytes() == bytes(range(32)) * 6


def test_a_moment_is_readable_as_soon_as_append_returns(tmp_path: Path) -> None:
    follower = Follower(tmp_path, 1)
    with RankWriter(tmp_path, 0, 1) as writer:
        for step in (1, 2):
            writer.append(Moment(step), {Group.PARAMETERS: RECORD}, {"loss": Metric.of(0.5)})
            assert follower.poll() == [Moment(step)]


def test_moments_must_go_forward(tmp_path: Path) -> None:
    with RankWriter(tmp_path, 0, 1) as writer:
        writer.append(Moment(2), {}, {})
        for step in (1, 2):
            with pytest.raises(ValueError, match="order of time"):
                writer.append(Moment(step), {}, {})


def test_the_metrics_group_is_made_from_the_metrics(tmp_path: Path) -> None:
    with RankWriter(tmp_path, 0, 1) as writer, pytest.raises(ValueError, match="made from the metrics"):
        writer.append(Moment(1), {Group.METRICS: RECORD}, {})


@pytest.mark.parametrize(("names", "problem"), [(("a", "a"), "there twice"), (("a\nb",), "line break")])
def test_names_that_cannot_be_told_apart_are_refused(tmp_path: Path, names: tuple[str, ...], problem: str) -> None:
    table = LeafTable(tuple(LeafKey(name, "bytes", ()) for name in names))
    with RankWriter(tmp_path, 0, 1) as writer, pytest.raises(ValueError, match=problem):
        writer.append(Moment(1), {Group.RNG: GroupRecord(table, bytes(16 * len(names)))}, {})


def test_an_earlier_recording_is_never_overwritten(tmp_path: Path) -> None:
    Launch().write(tmp_path)
    with pytest.raises(TrajectoryError, match="exists already"):
        RankWriter(tmp_path, 0, 2)


def test_nothing_follows_the_end(tmp_path: Path) -> None:
    writer = RankWriter(tmp_path, 0, 1)
    writer.close({})
    with pytest.raises(ValueError, match="closed"):
        writer.append(Moment(1), {}, {})


def test_a_metric_that_is_not_finite_is_kept(tmp_path: Path) -> None:
    payload = Metric("float32", "7fc00123")
    with RankWriter(tmp_path, 0, 1) as writer:
        writer.append(Moment(1), {}, {"loss": payload, "norm": Metric.of(float("inf"))})
        writer.close({})
    found = seal(tmp_path, {}, {}).metrics(0, Moment(1))
    assert found == {"loss": payload, "norm": Metric("float64", "7ff0000000000000")}


def test_names_of_any_characters_come_back(tmp_path: Path) -> None:
    name = 'expert "3" \\ µ\u2028 <b>'
    with RankWriter(tmp_path, 0, 1) as writer:
        table = LeafTable((LeafKey(name, "bytes", ()),))
        writer.append(Moment(1), {Group.RNG: GroupRecord(table, bytes(16))}, {name: Metric.of(1.0)})
        writer.close({"name": name})
    trajectory = seal(tmp_path, {}, {})
    assert trajectory.leaves(0, Moment(1), Group.RNG).table == table
    assert list(trajectory.metrics(0, Moment(1))) == [name]
    assert trajectory.endings == {0: {"name": name}}


def test_sigkill_leaves_every_finished_moment_readable(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from tests.trajectory.synthetic import Launch, files_up_to, moments
launch = Launch(ranks=1, moments=moments(10**6), ended=False)
launch.write_rank(Path(sys.argv[1]), 0)
"""
    out = tmp_path / "trajectory"
    process = subprocess.Popen([sys.executable, "-c", program, str(out)], cwd=Path(__file__).parents[2])
    try:
        follower = Follower(out, 1)
        seen: list[Moment] = []
        deadline = time.monotonic() + 60
        while len(seen) < 200 and time.monotonic() < deadline:
            seen += follower.poll()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(seen) >= 200
    trajectory = seal(out, {}, {})
    assert trajectory.status == "incomplete"
    assert trajectory.moments[: len(seen)] == tuple(seen)
    expected = Launch(ranks=1, moments=moments(200)).seal(tmp_path / "whole")
    for moment in expected.moments[:200]:
        assert trajectory.moment_digest(moment) == expected.moment_digest(moment)


def test_a_full_disk_leaves_the_moments_before_it(tmp_path: Path) -> None:
    with files_up_to(8000), pytest.raises(OSError, match="File too large"):
        Launch(ranks=1, moments=moments(1000)).write_rank(tmp_path, 0)
    assert (tmp_path / "rank-00000.jsonl").stat().st_size == 8000
    trajectory = seal(tmp_path, {}, {})
    assert trajectory.status == "incomplete"
    assert 0 < len(trajectory.moments) < 1000
    assert Trajectory.open(tmp_path).moments == trajectory.moments


def test_appending_600_leaves_takes_under_a_millisecond(tmp_path: Path) -> None:
    table = LeafTable(tuple(LeafKey(f"layer.{index}.weight", "bfloat16", (64, 64)) for index in range(100)))
    record = GroupRecord(table, bytes(1600))
    groups = dict.fromkeys(list(Group)[1:7], record)
    metrics = {f"metric {index}": Metric.of(0.1 * index) for index in range(30)}
    seconds = []
    with RankWriter(tmp_path, 0, 1) as writer:
        for step in range(1, 51):
            begin = time.perf_counter()
            writer.append(Moment(step), groups, metrics)
            seconds.append(time.perf_counter() - begin)
    assert sorted(seconds)[len(seconds) // 2] < 1e-3
