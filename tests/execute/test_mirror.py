"""What reaches the host of a launch's results: plain files of known names, whole lines first, and nothing forged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.execute.launching import request_in
from validator.execute.mirror import Mirror
from validator.execute.request import LaunchRequest, Sample
from validator.execute.untrusted import ForgedError
from validator.trajectory.follower import Follower
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import LeafKey, LeafTable
from validator.trajectory.metrics import Metric
from validator.trajectory.record import GroupRecord
from validator.trajectory.writer import RankWriter


@pytest.fixture
def request_(tmp_path: Path) -> LaunchRequest:
    made = request_in(tmp_path, samples=(Sample(0, "step:1", "rng", 7),))
    made.trajectory.mkdir(parents=True)
    return made


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The launch's own trajectory folder."""
    folder = tmp_path / "inside" / "trajectory"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def mirror(request_: LaunchRequest, results: Path) -> Mirror:
    return Mirror(results.parent, request_, 1 << 40)


def record() -> dict[Group, GroupRecord]:
    return {Group.RNG: GroupRecord(LeafTable((LeafKey("cpu", "uint8", (4,)),)), bytes(16))}


def test_what_ranks_append_arrives_and_is_followed(mirror: Mirror, results: Path, request_: LaunchRequest) -> None:
    writers = [RankWriter(results, rank, 2) for rank in range(2)]
    follower = Follower(request_.trajectory, 2)
    for step in (1, 2, 3):
        for writer in writers:
            writer.append(Moment(step), record(), {"loss": Metric.of(1.5, "float32")})
        mirror.follow()
        assert follower.poll() == [Moment(step)]
    for writer in writers:
        writer.close({})
    mirror.finish()
    for file in results.iterdir():
        assert (request_.trajectory / file.name).read_bytes() == file.read_bytes()


def test_only_known_names_arrive(mirror: Mirror, results: Path, request_: LaunchRequest) -> None:
    for name in ("claims.json", "checkpoint-00001.json", "rank-00002.jsonl", "trajectory.json", ".hidden"):
        (results / name).write_text("x")
    for name in ("measured-00000.json", "witness-00001.jsonl", "touched-00000.jsonl", "witness-00002.jsonl"):
        (results.parent / name).write_text("y")
    (results / "samples").mkdir()
    stem = request_.samples[0].stem
    for name in (f"{stem}.json", f"{stem}.bin", "other.bin"):
        (results / "samples" / name).write_text("z")
    mirror.finish()
    arrived = {str(path.relative_to(request_.scratch)) for path in request_.scratch.rglob("*") if path.is_file()}
    assert arrived == {
        "trajectory/claims.json", "trajectory/checkpoint-00001.json", "measured-00000.json",
        "witness-00001.jsonl", "touched-00000.jsonl", f"trajectory/samples/{stem}.json",
        f"trajectory/samples/{stem}.bin",
    }  # fmt: skip


def test_a_file_that_was_read_cannot_be_changed_afterwards(
    mirror: Mirror, results: Path, request_: LaunchRequest
) -> None:
    (results / "rank-00000.jsonl").write_text("one\n")
    mirror.follow()
    (results / "rank-00000.jsonl").write_text("two\nthree\n")
    mirror.follow()
    assert (request_.trajectory / "rank-00000.jsonl").read_text() == "one\nthree\n"


@pytest.mark.parametrize("name", ["rank-00001.jsonl", "rank-00000.leaves"])
def test_a_link_in_the_place_of_a_result_is_refused(mirror: Mirror, results: Path, name: str) -> None:
    (results / name).symlink_to("/etc/passwd")
    with pytest.raises(ForgedError, match=name):
        mirror.follow()


def test_folders_that_are_links_are_refused(mirror: Mirror, results: Path) -> None:
    (results / "samples").symlink_to("/etc")
    with pytest.raises(ForgedError, match="samples"):
        mirror.finish()
    results.rename(results.parent / "moved")
    results.symlink_to(results.parent / "moved")
    with pytest.raises(ForgedError, match="trajectory"):
        mirror.follow()


def test_what_is_too_large_is_refused(mirror: Mirror, results: Path, request_: LaunchRequest) -> None:
    with (results / "claims.json").open("wb") as file:
        file.truncate((8 << 20) + 1)
    with pytest.raises(ForgedError, match=r"'claims\.json' is larger than 8388608 bytes"):
        mirror.finish()
    assert not (request_.trajectory / "claims.json").exists()
    with (results / "rank-00000.leaves").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ForgedError, match=r"'rank-00000\.leaves' is larger than"):
        mirror.follow()


def sparse(file: Path, size: int) -> None:
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as opened:
        opened.truncate(size)


def test_samples_that_take_nothing_on_one_side_take_nothing_on_the_other(tmp_path: Path, results: Path) -> None:
    request_ = request_in(tmp_path, samples=tuple(Sample(0, f"step:{step}", "rng", 7) for step in range(1, 6)))
    request_.trajectory.mkdir(parents=True)
    for sample in request_.samples:
        sparse(results / "samples" / f"{sample.stem}.bin", 1 << 30)
    with pytest.raises(ForgedError, match="samples are larger than 4294967296 bytes together"):
        Mirror(results.parent, request_, 1 << 40).finish()
    (results / "samples" / f"{request_.samples[0].stem}.bin").unlink()
    with pytest.raises(ForgedError, match="results are larger than 3221225472 bytes together"):
        Mirror(results.parent, request_, 3 << 30).finish()
    assert not request_.samples_directory.exists()


def test_all_copies_together_have_a_limit(results: Path, request_: LaunchRequest) -> None:
    mirror = Mirror(results.parent, request_, 3000)
    sparse(results / "rank-00000.leaves", 1000)
    mirror.follow()
    sparse(results / "rank-00000.leaves", 2000)
    sparse(results / "claims.json", 1000)
    mirror.finish()
    assert (request_.trajectory / "rank-00000.leaves").stat().st_size == 2000
    assert (request_.trajectory / "claims.json").stat().st_size == 1000
    sparse(results / "rank-00001.leaves", 1)
    with pytest.raises(ForgedError, match=r"larger than 3000 bytes together \(policy\.limits\.disk_gibibytes\)"):
        mirror.follow()
    assert not (request_.trajectory / "rank-00001.leaves").exists()


@pytest.mark.parametrize("name", ["claims.json", "samples/{stem}.json"])
def test_a_file_that_is_written_once_counts_as_well(results: Path, request_: LaunchRequest, name: str) -> None:
    name = name.format(stem=request_.samples[0].stem)
    sparse(results / name, 3001)
    with pytest.raises(ForgedError, match="larger than 3000 bytes together"):
        Mirror(results.parent, request_, 3000).finish()
    assert not (request_.trajectory / name).exists()


@pytest.mark.parametrize("pieces", [1, 5])
def test_a_line_without_end_is_refused(mirror: Mirror, results: Path, pieces: int) -> None:
    def grow() -> None:
        for _ in range(pieces):
            with (results / "rank-00000.jsonl").open("ab") as file:
                file.write(b"x" * ((10 << 20) // pieces))
            mirror.follow()

    with pytest.raises(ForgedError, match="has a line of more than 8388608 bytes"):
        grow()


def test_nothing_yet_is_nothing(request_: LaunchRequest, tmp_path: Path) -> None:
    mirror = Mirror(tmp_path / "absent", request_, 1 << 40)
    mirror.finish()
    assert list(request_.trajectory.iterdir()) == []
