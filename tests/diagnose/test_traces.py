"""Traces on disk: what a launch left behind is read whole or refused, in one sentence."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from tests.diagnose.made import Step, write
from validator.diagnose.localise import localise
from validator.diagnose.traces import pack_trace, read_trace
from validator.errors import TrajectoryError
from validator.report.model import LocalisationOutcome


def test_a_trace_reads_back(tmp_path: Path) -> None:
    trace = Step().trace()
    assert read_trace(write(trace, tmp_path / "trace")) == trace


def test_a_golden_keeps_it_in_one_compressed_file(tmp_path: Path) -> None:
    trace = Step().trace()
    folder = write(trace, tmp_path / "trace")
    file = tmp_path / "trace.jsonl.xz"
    file.write_bytes(pack_trace(folder))
    assert read_trace(file) == trace
    other = write(Step(planted=(0, 5)).trace(), tmp_path / "other")
    assert localise(file, other).outcome is LocalisationOutcome.MODULE


@pytest.mark.parametrize("damage", ["cut", "edited", "missing", "version", "link", "no json", "count"])
def test_a_damaged_trace_is_refused_in_one_sentence(tmp_path: Path, damage: str) -> None:
    folder = write(Step().trace(), tmp_path / "trace")
    file = folder / "rank-00001.jsonl"
    text = file.read_text()
    match damage:
        case "cut":
            file.write_text(text[: len(text) // 2])
        case "edited":
            file.write_text(text.replace('"phase"', '"fase"'))
        case "missing":
            file.unlink()
        case "version":
            file.write_text(text.replace('"version": 1', '"version": 9'))
        case "link":
            file.rename(tmp_path / "elsewhere")
            file.symlink_to(tmp_path / "elsewhere")
        case "no json":
            file.write_text("[" * 100_000)
        case _:
            file.write_text(text.replace('"end": true, "events": ', '"end": true, "events": 1'))
    with pytest.raises(TrajectoryError, match="trace"):
        read_trace(folder)


@pytest.mark.parametrize("content", [b"", b"no such thing", lzma.compress(b"{}")])
def test_a_damaged_file_of_a_golden_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "trace.jsonl.xz"
    file.write_bytes(content)
    with pytest.raises(TrajectoryError, match="trace"):
        read_trace(file)


def test_no_trace_at_all_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    with pytest.raises(TrajectoryError):
        read_trace(tmp_path / "trace")
    with pytest.raises(TrajectoryError):
        read_trace(tmp_path / "nothing")
