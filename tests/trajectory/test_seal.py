from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trajectory.synthetic import Launch, files_up_to, moments
from validator.errors import TrajectoryError
from validator.trajectory import mixsum
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import MIXSUM, fold_named
from validator.trajectory.reader import Trajectory
from validator.trajectory.record import GroupRecord
from validator.trajectory.seal import _places, seal
from validator.trajectory.verify import verify_rank

TEXT, LEAVES = "rank-00000.jsonl", "rank-00000.leaves"


def test_a_whole_launch_is_complete(tmp_path: Path) -> None:
    trajectory = Launch().seal(tmp_path)
    assert trajectory.status == "complete"
    assert trajectory.ranks == (0, 1)
    assert trajectory.moments == moments(3)
    assert trajectory.header == {"pipeline": "synthetic", "stamps": []}
    assert trajectory.environment == {"packages": {"torch": "2.14.1"}}
    assert trajectory.endings[1] == {"layout": {"rank": 1, "tp": 0}}


def test_digests_fold_as_documented(tmp_path: Path) -> None:
    launch = Launch()
    trajectory = launch.seal(tmp_path)
    moment = Moment(2)
    groups = trajectory.groups(1, moment)
    parameters = launch.groups(1, moment)[Group.PARAMETERS]
    assert trajectory.leaves(1, moment, Group.PARAMETERS) == parameters
    assert groups[Group.PARAMETERS] == parameters.digest
    assert trajectory.rank_digest(1, moment) == fold_named((group, groups[group]) for group in Group if group in groups)
    ranks = [(f"rank:{rank}", trajectory.rank_digest(rank, moment)) for rank in (0, 1)]
    assert trajectory.moment_digest(moment) == fold_named(ranks)
    assert trajectory.root == fold_named((str(each), trajectory.moment_digest(each)) for each in trajectory.moments)


def test_equal_launches_have_equal_roots_and_files(tmp_path: Path) -> None:
    first, second = Launch().seal(tmp_path / "a"), Launch().seal(tmp_path / "b")
    assert first.root == second.root
    for name in first.files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_rank_without_end_record_is_incomplete(tmp_path: Path) -> None:
    launch = Launch(ended=False)
    trajectory = launch.seal(tmp_path)
    assert (trajectory.status, trajectory.moments, trajectory.endings) == ("incomplete", moments(3), {})


def test_only_moments_of_all_ranks_count(tmp_path: Path) -> None:
    Launch().write_rank(tmp_path, 0)
    Launch(moments=moments(2), ended=False).write_rank(tmp_path, 1)
    trajectory = seal(tmp_path, {}, {})
    assert trajectory.status == "incomplete"
    assert trajectory.moments == moments(2)
    assert trajectory.metrics(0, Moment(2))["loss"].value == 6.0
    whole = Launch(moments=moments(2)).seal(tmp_path / "whole")
    assert trajectory.root == whole.root


def test_an_absent_rank_leaves_no_moment(tmp_path: Path) -> None:
    Launch().write_rank(tmp_path, 0)
    trajectory = seal(tmp_path, {}, {})
    assert (trajectory.status, trajectory.ranks, trajectory.moments) == ("incomplete", (0,), ())


def test_a_launch_that_recorded_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match="no rank file"):
        seal(tmp_path, {}, {})


def test_sealing_twice_is_refused(tmp_path: Path) -> None:
    Launch().seal(tmp_path)
    with pytest.raises(TrajectoryError, match="sealed already"):
        seal(tmp_path, {}, {})


@pytest.mark.parametrize("size", [0, 100, 1000, 2000, 3000])
def test_a_full_disk_leaves_it_unsealed_and_sealable(tmp_path: Path, size: int) -> None:
    whole = Launch().seal(tmp_path / "whole")
    Launch().write(tmp_path / "full")
    with files_up_to(size), pytest.raises(TrajectoryError, match="cannot be sealed"):
        seal(tmp_path / "full", {}, {})
    assert not (tmp_path / "full" / "trajectory.json").exists()
    assert seal(tmp_path / "full", {}, {}).root == whole.root


def test_a_text_cut_at_any_byte_yields_the_moments_before_the_cut(tmp_path: Path) -> None:
    Launch(ranks=1).write(tmp_path)
    path = tmp_path / TEXT
    whole = path.read_bytes()
    (header, *rest) = whole.splitlines(keepends=True)
    closings, at = [], len(header)
    for line in rest:
        at += len(line)
        if line.startswith(b'{"moment"'):
            closings.append(at)
    assert len(closings) == 5
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        found = verify_rank(tmp_path, 0)
        finished = sum(closing <= cut for closing in closings)
        assert tuple(moment.moment for moment in found.moments) == moments(3)[:finished]
        assert found.end is None
        assert found.world_size == (1 if cut >= len(header) else None)


def test_more_moments_than_the_launch_has_are_refused(tmp_path: Path) -> None:
    Launch().write(tmp_path)
    with pytest.raises(TrajectoryError, match=r"rank-00000\.jsonl has 5 moments, and its launch at most 4"):
        seal(tmp_path, {}, {}, most_moments=4)
    assert seal(tmp_path, {}, {}, most_moments=5).moments == moments(3)


@pytest.mark.timeout(10)
def test_places_of_many_moments_are_found_at_once() -> None:
    own = moments(100_000)
    assert _places(own, own[1:]) == list(range(1, len(own)))


def test_leaves_cut_at_any_byte_are_truncated(tmp_path: Path) -> None:
    Launch(ranks=1).write(tmp_path)
    path = tmp_path / LEAVES
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with pytest.raises(TrajectoryError, match="truncated"):
            verify_rank(tmp_path, 0)


def test_leaves_of_an_unfinished_moment_are_left_out(tmp_path: Path) -> None:
    Launch(ranks=1, ended=False).write(tmp_path)
    with (tmp_path / LEAVES).open("ab") as file:
        file.write(b"half")
    assert len(verify_rank(tmp_path, 0).moments) == 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Launch(ranks=1).write(tmp_path_factory.mktemp("whole"))


@settings(max_examples=400, deadline=None)
@given(data=st.data(), name=st.sampled_from([TEXT, LEAVES]))
def test_an_edited_byte_anywhere_is_an_error(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    edited = tmp_path_factory.mktemp("edited")
    shutil.copytree(whole, edited, dirs_exist_ok=True)
    content = bytearray((edited / name).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    (edited / name).write_bytes(content)
    try:
        found = verify_rank(edited, 0)
    except TrajectoryError:
        return
    # The last line break of all: without it the end record is not finished, as in a file that was cut.
    assert (name, at) == (TEXT, len(content) - 1)
    assert found.end is None


@pytest.mark.parametrize("target", ["loss", "gradient norm"])
def test_an_edited_metric_is_an_error(tmp_path: Path, target: str) -> None:
    Launch(ranks=1).write(tmp_path)
    path = tmp_path / TEXT
    lines = path.read_text().splitlines(keepends=True)
    index = next(index for index, line in enumerate(lines) if line.startswith(f'{{"metric":"{target}"'))
    fields = json.loads(lines[index])
    fields["bits"] = "0" * len(fields["bits"])
    lines[index] = json.dumps(fields, separators=(",", ":")) + "\n"
    path.write_text("".join(lines))
    with pytest.raises(TrajectoryError, match="edited"):
        seal(tmp_path, {}, {})
    assert not (tmp_path / "trajectory.json").exists()


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("fold_named", "does not fold from its groups"),
        ("metric_record", "not those of its leaves"),
    ],
)
def test_a_writer_that_folds_wrongly_is_found_though_its_seals_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, problem: str
) -> None:
    constants = {
        "fold_named": lambda _children: bytes(16),
        "metric_record": lambda _metrics, table, _algorithm: GroupRecord(table, bytes(16 * len(table))),
    }
    monkeypatch.setattr(f"validator.trajectory.writer.{function}", constants[function])
    Launch(ranks=1).write(tmp_path)
    with pytest.raises(TrajectoryError, match=problem):
        seal(tmp_path, {}, {})


def test_a_removed_moment_is_an_error(tmp_path: Path) -> None:
    Launch(ranks=1).write(tmp_path)
    path = tmp_path / TEXT
    lines = path.read_text().splitlines(keepends=True)
    ends = [index for index, line in enumerate(lines) if line.startswith('{"moment"')]
    path.write_text("".join(lines[: ends[3] + 1] + lines[ends[4] + 1 :]))
    with pytest.raises(TrajectoryError, match="edited"):
        seal(tmp_path, {}, {})


def replace_header(path: Path, **changes: object) -> None:
    first, rest = path.read_text().split("\n", 1)
    path.write_text(json.dumps({**json.loads(first), **changes}, separators=(",", ":")) + "\n" + rest)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"schema": "other/rank"}, "foreign"),
        ({"version": 2}, "version 2, this validator reads version 1"),
        ({"algorithm": "sha256/1"}, "foreign.*sha256/1"),
        ({"rank": 1}, "foreign.*rank 1"),
        ({"world_size": 7}, "edited"),  # nothing else in the file says so, but the seal does
    ],
)
def test_a_header_of_something_else_is_named(tmp_path: Path, changes: dict[str, object], problem: str) -> None:
    Launch(ranks=1).write(tmp_path)
    replace_header(tmp_path / TEXT, **changes)
    with pytest.raises(TrajectoryError, match=problem):
        seal(tmp_path, {}, {})


def test_a_rank_of_another_launch_is_foreign(tmp_path: Path) -> None:
    Launch().write_rank(tmp_path, 0, world_size=2)
    Launch().write_rank(tmp_path, 1, world_size=4)
    with pytest.raises(TrajectoryError, match="foreign.*4 ranks.*2"):
        seal(tmp_path, {}, {})


def test_a_rank_with_another_digest_is_foreign(tmp_path: Path) -> None:
    Launch().write_rank(tmp_path, 0)
    Launch(algorithm=MIXSUM).write_rank(tmp_path, 1)
    with pytest.raises(TrajectoryError, match="rank-00001.*foreign.*mixsum-128/1.*other ranks.*xxh3-128/1"):
        seal(tmp_path, {}, {})


def test_a_launch_on_a_gpu_seals_reads_and_verifies_with_its_own_digest(tmp_path: Path) -> None:
    trajectory = Launch(algorithm=MIXSUM).seal(tmp_path)
    assert (trajectory.algorithm, trajectory.complete) == ("mixsum-128/1", True)
    record = Trajectory.open(tmp_path).leaves(1, Moment(2), Group.METRICS)
    loss = record.table.keys[0]
    assert record.leaf(0) == mixsum.digest(struct.pack("<d", 6.0), loss.seed)


def test_missing_leaves_are_truncated(tmp_path: Path) -> None:
    Launch(ranks=1).write(tmp_path)
    (tmp_path / LEAVES).unlink()
    with pytest.raises(TrajectoryError, match="truncated"):
        seal(tmp_path, {}, {})
