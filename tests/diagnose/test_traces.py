"""Traces on disk: what a launch left behind is read whole or refused, in one sentence."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.diagnose.made import Step, write
from tests.forged import anything, lines_like
from validator.diagnose.localise import localise, localise_traces
from validator.diagnose.traces import Trace, pack_trace, read_trace
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


HEADER = {"schema": "validator/trace", "version": 1, "step": 1, "rank": 0, "world_size": 1}
EVENT = {
    "event": 0, "phase": "forward", "micro_batch": 0, "module": "a", "name": "", "call": 1, "parent": 0,
    "inputs": {"input 0": "00"}, "outputs": {}, "ranks": [0],
}  # fmt: skip
END = {"end": True, "events": 1}


def told(folder: Path, *lines: object) -> Trace:
    """What is read where rank 0 wrote these lines."""
    folder.mkdir(exist_ok=True)
    (folder / "rank-00000.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return read_trace(folder)


def test_the_smallest_trace_is_read(tmp_path: Path) -> None:
    (event,) = told(tmp_path, HEADER, EVENT, END).events[0]
    assert (event.call, event.parent, event.ranks) == (1, 0, (0,))


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "changes",
    [
        {"world_size": 2_000_000_000}, {"world_size": 2}, {"world_size": 1.0}, {"world_size": 0}, {"rank": -1},
        {"rank": 1}, {"rank": True}, {"step": float("inf")}, {"step": "1"}, {"step": 10**400}, {"step": None},
    ],
)  # fmt: skip
def test_a_header_with_senseless_numbers_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(TrajectoryError, match="trace"):
        told(tmp_path, {**HEADER, **changes}, EVENT, END)


@pytest.mark.parametrize(
    "changes",
    [
        {"event": 10**400}, {"event": float("inf")}, {"event": 0.5}, {"micro_batch": "0"}, {"nth": []},
        {"ranks": [10**400]}, {"ranks": 3}, {"module": "x" * 401}, {"outputs": {"y" * 401: "00"}}, {"inputs": ["a"]},
        {"class": "Layer", "file": "layer.py", "line": float("nan")}, {"class": "Layer"},
        {"call": 1, "parent": 1}, {"call": 1, "parent": 2},
    ],
)  # fmt: skip
def test_an_event_that_no_launch_writes_is_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Among them a call within itself, or within one that began later."""
    with pytest.raises(TrajectoryError, match="is cut off, or no trace of a launch"):
        told(tmp_path, HEADER, {**EVENT, **changes}, END)


def test_a_foreign_schema_is_quoted_briefly(tmp_path: Path) -> None:
    with pytest.raises(TrajectoryError, match="this program reads validator/trace") as error:
        told(tmp_path, {**HEADER, "schema": "\x1b[2J" + "x" * 100_000}, EVENT, END)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500


@settings(deadline=None)
@given(st.sampled_from([HEADER, EVENT, END]), st.data())
def test_a_whole_trace_with_another_value_is_a_trace_or_refused(
    tmp_path_factory: pytest.TempPathFactory, line: dict[str, Any], data: st.DataObject
) -> None:
    changed = {**line, data.draw(st.sampled_from(list(line))): data.draw(anything)}
    read_or_refused(tmp_path_factory, [changed if each is line else each for each in (HEADER, EVENT, END)])


@settings(deadline=None)
@given(lines_like([HEADER, EVENT, END]))
def test_any_lines_are_a_trace_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[object]) -> None:
    read_or_refused(tmp_path_factory, lines)


def read_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[Any]) -> None:
    try:
        trace = told(tmp_path_factory.getbasetemp() / "any-lines", *lines)
    except TrajectoryError:
        return
    assert localise_traces(trace, trace).outcome is LocalisationOutcome.VANISHED


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_trace_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "any-bytes"
    folder.mkdir(exist_ok=True)
    (folder / "rank-00000.jsonl").write_bytes(content)
    with pytest.raises(TrajectoryError):
        read_trace(folder)
