from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trajectory.synthetic import NAMES, Launch, moments
from validator.errors import TrajectoryError
from validator.trajectory.groups import Group, Moment
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory

FILES = ("environment.json", "rank-00000.jsonl", "rank-00000.leaves", "trajectory.json", "tree.bin")


@pytest.fixture(scope="module")
def sealed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Launch(ranks=1).seal(tmp_path_factory.mktemp("sealed")).directory


@pytest.fixture
def copy(sealed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sealed, tmp_path / "copy"))


def test_files_are_those_on_disk(sealed: Path) -> None:
    assert tuple(sorted(Trajectory.open(sealed).files)) == FILES == tuple(sorted(p.name for p in sealed.iterdir()))


def test_everything_that_was_written_is_read(tmp_path: Path) -> None:
    launch = Launch(ranks=3)
    launch.seal(tmp_path)
    trajectory = Trajectory.open(tmp_path)
    for rank in (0, 1, 2):
        for moment in moments(3):
            records = launch.groups(rank, moment)
            assert trajectory.metrics(rank, moment) == launch.metrics(rank, moment)
            assert set(trajectory.groups(rank, moment)) - {Group.METRICS} == set(records)
            for group, record in records.items():
                assert trajectory.leaves(rank, moment, group) == record
    expected = 3 * sum(map(len, NAMES.values())) + 3 * 2
    assert trajectory.moment_leaves(Moment(1)) == expected


def test_groups_that_some_ranks_do_not_have_are_absent(tmp_path: Path) -> None:
    names = lambda rank, _moment, group: () if (rank, group) == (1, Group.BATCH) else NAMES.get(group, ())  # noqa: E731
    trajectory = Launch(names=names).seal(tmp_path)
    assert Group.BATCH in trajectory.groups(0, Moment(1))
    assert Group.BATCH not in trajectory.groups(1, Moment(1))
    with pytest.raises(KeyError):
        trajectory.leaves(1, Moment(1), Group.BATCH)


@pytest.mark.parametrize(("rank", "moment"), [(5, Moment(1)), (0, Moment(99))])
def test_what_is_not_there_is_a_key_error(sealed: Path, rank: int, moment: Moment) -> None:
    trajectory = Trajectory.open(sealed)
    for read in (trajectory.groups, trajectory.metrics, trajectory.rank_digest):
        with pytest.raises(KeyError):
            read(rank, moment)


def test_metrics_keep_decimal_and_bits_in_text(sealed: Path) -> None:
    line = '{"metric":"gradient norm","dtype":"float32","bits":"3dcccccd","value":"0.10000000149011612"}\n'
    assert line in (sealed / "rank-00000.jsonl").read_text()
    assert Trajectory.open(sealed).metrics(0, Moment(1))["gradient norm"] == Metric("float32", "3dcccccd")


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_at_any_byte_is_an_error(copy: Path, name: str) -> None:
    whole = (copy / name).read_bytes()
    for cut in range(len(whole)):
        (copy / name).write_bytes(whole[:cut])
        with pytest.raises(TrajectoryError, match="truncated"):
            Trajectory.open(copy, verify=False)


@pytest.mark.parametrize("name", FILES)
def test_a_longer_file_is_an_error(copy: Path, name: str) -> None:
    with (copy / name).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(TrajectoryError):
        Trajectory.open(copy, verify=False)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), name=st.sampled_from(FILES))
def test_an_edited_byte_anywhere_is_an_error(
    sealed: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, name: str
) -> None:
    edited = tmp_path_factory.mktemp("edited")
    shutil.copytree(sealed, edited, dirs_exist_ok=True)
    content = bytearray((edited / name).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= data.draw(st.integers(1, 255))
    (edited / name).write_bytes(content)
    with pytest.raises(TrajectoryError):
        Trajectory.open(edited)


@pytest.mark.parametrize("name", [name for name in FILES if name != "trajectory.json"])
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(TrajectoryError, match=f"{name} is missing"):
        Trajectory.open(copy)


def test_a_directory_without_summary_is_no_trajectory(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match="no sealed trajectory"):
        Trajectory.open(tmp_path)
    with pytest.raises(TrajectoryError, match="no sealed trajectory"):
        Trajectory.open(tmp_path / "nowhere")


def test_a_rank_that_is_not_listed_is_foreign(copy: Path) -> None:
    shutil.copy(copy / "rank-00000.jsonl", copy / "rank-00001.jsonl")
    with pytest.raises(TrajectoryError, match=r"rank-00001.jsonl is foreign"):
        Trajectory.open(copy)


def test_a_swapped_rank_file_is_an_error(tmp_path: Path) -> None:
    Launch().seal(tmp_path)
    first, second = tmp_path / "rank-00000.leaves", tmp_path / "rank-00001.leaves"
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(content)
    with pytest.raises(TrajectoryError, match="edited"):
        Trajectory.open(tmp_path)


def resign(text: str) -> str:
    """Give an edited summary a digest that fits, as a later version's writer would."""
    head = text[: text.rindex(',\n "digest"')]
    return f'{head},\n "digest": "{hashlib.sha256(head.encode()).hexdigest()}"\n}}\n'


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda text: text.replace('"version": 1', '"version": 2'), "version 2, this validator reads version 1"),
        (lambda text: text.replace("validator/trajectory", "other/thing"), "foreign"),
        (lambda _: '{"schema": "validator/golden", "version": 1}\n', "foreign"),
        (lambda _: "[]\n", "foreign"),
        (lambda text: text.replace("synthetic", "synthetiC"), "edited"),
        (lambda text: text.replace("{", "[", 1), "edited"),
        (lambda text: text.replace('\n "root"', '\n  "root"'), "edited"),
    ],
)
def test_a_summary_of_something_else_is_named(copy: Path, change: Callable[[str], str], problem: str) -> None:
    path = copy / "trajectory.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(TrajectoryError, match=problem):
        Trajectory.open(copy)


def test_a_future_version_is_named_before_its_digest_is_looked_at(copy: Path) -> None:
    path = copy / "trajectory.json"
    path.write_text(resign(path.read_text().replace('"version": 1', '"version": 9')))
    with pytest.raises(TrajectoryError, match="version 9"):
        Trajectory.open(copy)


def test_a_golden_of_a_small_pipeline_is_small(tmp_path: Path) -> None:
    names = [f"decoder.layers.{index}.mixer.in_proj.weight" for index in range(75)]
    launch = Launch(moments=moments(10), names=lambda _rank, _moment, group: () if group is Group.METRICS else names)
    trajectory = launch.seal(tmp_path)
    assert trajectory.moment_leaves(Moment(1)) == 2 * (10 * 75 + 2)
    assert sum((tmp_path / name).stat().st_size for name in trajectory.files) < 1_000_000


def test_the_summary_reads_as_json(sealed: Path) -> None:
    summary = json.loads((sealed / "trajectory.json").read_text())
    assert list(summary)[:4] == ["schema", "version", "algorithm", "status"]
    assert list(summary["moments"]) == ["setup:0", "entry:0", "step:1", "step:2", "step:3"]
