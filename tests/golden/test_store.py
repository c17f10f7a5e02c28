"""The store on plain files: what may become golden, and that no edited byte goes unseen."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden.samples import APPROVAL, HARDWARE, PIPELINE, trajectory
from validator.errors import TrajectoryError, UsageError, ValidatorError
from validator.golden import Golden, GoldenRecord, GoldenStore, verify

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(tmp_path: Path) -> GoldenStore:
    return GoldenStore(tmp_path / "golden")


def files_of(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_an_empty_store_has_no_golden(store: GoldenStore) -> None:
    assert store.find(PIPELINE, HARDWARE) is None
    assert store.list() == ()
    assert verify(store).holds


def test_every_shipped_golden_of_a_cpu_pipeline_is_under_a_megabyte() -> None:
    goldens = [each for each in GoldenStore(ROOT / "golden").keys() if each[1].startswith("cpu-")]  # noqa: SIM118
    assert len(goldens) >= 5
    for pipeline, hardware_class in goldens:
        folder = ROOT / "golden" / pipeline / hardware_class
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 1_000_000, folder


def test_what_is_written_is_found(store: GoldenStore, tmp_path: Path) -> None:
    candidate = trajectory(tmp_path)
    written = store.write(candidate, APPROVAL)
    found = store.find(PIPELINE, HARDWARE)
    assert found is not None
    assert found.record == written.record
    assert found.trajectory.root == candidate.root
    assert found.record.supersedes is None
    assert found.record.drift == {}
    assert (found.record.approver, found.record.requester, found.record.launches) == ("Ada", "Grace", 2)
    assert store.keys() == ((PIPELINE, HARDWARE),)
    assert store.list() == (found.record,)


def test_only_the_trajectory_is_kept(store: GoldenStore, tmp_path: Path) -> None:
    golden = store.write(trajectory(tmp_path), APPROVAL)
    assert files_of(golden.folder) == [
        "golden.json",
        "trajectory/environment.json",
        "trajectory/rank-00000.jsonl",
        "trajectory/rank-00000.leaves",
        "trajectory/rank-00001.jsonl",
        "trajectory/rank-00001.leaves",
        "trajectory/trajectory.json",
        "trajectory/tree.bin",
    ]
    assert files_of(store.root) == [f"{PIPELINE}/{HARDWARE}/{name}" for name in files_of(golden.folder)]


def test_a_new_golden_takes_the_place_of_the_old_and_names_it(store: GoldenStore, tmp_path: Path) -> None:
    first = store.write(trajectory(tmp_path), APPROVAL)
    longer = trajectory(tmp_path, (5.5, 5.26, 5.0, 4.9), seed=1)
    second = store.write(longer, dataclasses.replace(APPROVAL, reason="a new kernel", change="abc123"))
    assert second.record.supersedes == first.digest
    assert second.record.change == "abc123"
    drift = second.record.drift["lm_loss"]
    assert drift.largest == pytest.approx(0.01 / 5.26)
    assert (drift.moment, drift.final) == ("step:2", 0.0)
    assert store.keys() == ((PIPELINE, HARDWARE),)
    found = store.find(PIPELINE, HARDWARE)
    assert found is not None
    assert found.trajectory.root == longer.root


@pytest.mark.parametrize(
    ("candidate", "approval", "parts"),
    [
        ({"header": {"stamps": ["--env A=b", "fault"]}}, {}, ["stamped (--env A=b, fault)"]),
        ({"complete": False}, {}, ["is incomplete"]),
        ({"losses": (5.5, math.nan)}, {}, ["lm_loss = nan at step:2 on rank 0", "finite"]),
        ({"losses": (math.inf,)}, {}, ["lm_loss = inf at step:1"]),
        ({"header": {"pipeline": ""}}, {}, ["header"]),
        ({"header": {"pipeline": "../x"}}, {}, ["header"]),
        ({"header": {"hardware_class": ".."}}, {}, ["header"]),
        ({}, {"launches": 1}, ["1 launch gave", "needs 2"]),
        ({}, {"resume": "fails"}, ["resume gate is 'fails'"]),
        ({}, {"reason": " "}, ["reason is ' '", "--reason"]),
        ({}, {"approver": "a\nb"}, ["approver is 'a\\nb'", "--approver"]),
    ],
)
def test_what_may_not_become_golden(
    store: GoldenStore, tmp_path: Path, candidate: dict[str, object], approval: dict[str, object], parts: list[str]
) -> None:
    with pytest.raises(UsageError) as caught:
        store.write(trajectory(tmp_path, **candidate), dataclasses.replace(APPROVAL, **approval))
    assert all(part in str(caught.value) for part in parts)
    assert str(caught.value).endswith(".")
    assert not store.root.exists() or files_of(store.root) == []


def test_a_store_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "golden").write_text("a file in the way")
    with pytest.raises(ValidatorError, match=r"cannot be written .*--golden"):
        GoldenStore(tmp_path / "golden").write(trajectory(tmp_path), APPROVAL)


def test_a_large_drift_must_be_acknowledged(store: GoldenStore, tmp_path: Path) -> None:
    first = store.write(trajectory(tmp_path), APPROVAL)
    jump = trajectory(tmp_path, (5.5, 5.25, 4.7))
    with pytest.raises(UsageError, match=r"lm_loss moves by 6\.0% at step:3 .* more than 5%; .*--accept-drift"):
        store.write(jump, APPROVAL)
    assert store.list() == (first.record,)
    second = store.write(jump, dataclasses.replace(APPROVAL, accept_drift=True))
    assert second.record.drift["lm_loss"].final == pytest.approx(0.06)


def test_an_unknown_drift_must_be_acknowledged(store: GoldenStore, tmp_path: Path) -> None:
    store.write(trajectory(tmp_path), APPROVAL)
    with pytest.raises(UsageError, match="drift is unknown"):
        store.write(trajectory(tmp_path, metric="other"), APPROVAL)


def test_a_golden_under_a_foreign_name_is_refused(store: GoldenStore, tmp_path: Path) -> None:
    golden = store.write(trajectory(tmp_path), APPROVAL)
    shutil.copytree(golden.folder, store.folder("another", HARDWARE))
    with pytest.raises(TrajectoryError, match="is the golden of small"):
        store.find("another", HARDWARE)
    assert len(verify(store).problems) == 1


def test_a_folder_left_by_a_recording_that_died_is_remarked_and_is_no_golden(
    store: GoldenStore, tmp_path: Path
) -> None:
    golden = store.write(trajectory(tmp_path), APPROVAL)
    golden.folder.rename(golden.folder.with_name(f".{HARDWARE}.superseded"))
    assert store.find(PIPELINE, HARDWARE) is None
    assert any("did not end" in remark for remark in verify(store).remarks)
    store.write(trajectory(tmp_path), APPROVAL)
    assert not any("did not end" in remark for remark in verify(store).remarks)


def test_extra_missing_and_linked_files_fail(store: GoldenStore, tmp_path: Path) -> None:
    golden = store.write(trajectory(tmp_path), APPROVAL)
    leaves = golden.folder / "trajectory" / "rank-00000.leaves"
    extra = golden.folder / "note.txt"
    extra.write_text("x")
    assert "note.txt does not belong" in verify(store).problems[0]
    extra.unlink()
    content = leaves.read_bytes()
    leaves.unlink()
    assert "rank-00000.leaves is missing" in verify(store).problems[0]
    (tmp_path / "elsewhere").write_bytes(content)
    leaves.symlink_to(tmp_path / "elsewhere")
    assert "is no plain file" in verify(store).problems[0]
    leaves.unlink()
    leaves.write_bytes(content)
    assert verify(store).holds


def test_another_version_is_named(store: GoldenStore, tmp_path: Path) -> None:
    file = store.write(trajectory(tmp_path), APPROVAL).folder / "golden.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 2}))
    with pytest.raises(TrajectoryError, match=r"version 2; this program reads validator/golden, version 1\.$"):
        store.find(PIPELINE, HARDWARE)


@pytest.fixture(scope="module")
def pristine() -> Iterator[Golden]:
    with tempfile.TemporaryDirectory() as folder:
        yield GoldenStore(Path(folder) / "golden").write(trajectory(Path(folder)), APPROVAL)


@settings(deadline=None)
@given(data=st.data())
def test_no_edited_byte_goes_unseen(pristine: Golden, data: st.DataObject) -> None:
    store = GoldenStore(pristine.folder.parent.parent)
    file = pristine.folder / data.draw(st.sampled_from(files_of(pristine.folder)))
    content = file.read_bytes()
    at = data.draw(st.integers(0, len(content) - 1))
    kind = data.draw(st.sampled_from(["change", "insert", "remove", "truncate"]))
    byte = bytes([data.draw(st.integers(0, 255).filter(lambda value: value != content[at]))])
    edited = {
        "change": content[:at] + byte + content[at + 1 :],
        "insert": content[:at] + byte + content[at:],
        "remove": content[:at] + content[at + 1 :],
        "truncate": content[:at],
    }[kind]
    try:
        file.write_bytes(edited)
        with pytest.raises(TrajectoryError):
            store.find(PIPELINE, HARDWARE)
        result = verify(store)
        assert not result.holds
        assert "\n" not in result.problems[0]
    finally:
        file.write_bytes(content)


def test_the_record_reads_as_it_is_written(store: GoldenStore, tmp_path: Path) -> None:
    store.write(trajectory(tmp_path), APPROVAL)
    reason = dataclasses.replace(APPROVAL, reason="naïve “quotes” 日本")
    record = store.write(trajectory(tmp_path, seed=2), reason).record
    assert GoldenRecord.from_text(record.to_text(), "here") == record
    assert json.loads(record.to_text())["digest"] == record.digest
