"""A rank's text as code under test may forge it: refused in one sentence, and never kept."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.forged import anything, lines_like
from tests.trajectory.synthetic import Launch
from validator.errors import TrajectoryError
from validator.trajectory.groups import Group, Moment
from validator.trajectory.lines import header_line
from validator.trajectory.metrics import parse_metric
from validator.trajectory.scan import RankMoment, RankScanner

HEADER = json.loads(header_line(0, 1))
METRIC = {"metric": "loss", "dtype": "float32", "bits": "3dcccccd", "value": "0.1"}
LEAF = {"leaf": "w", "dtype": "float32", "shape": [4], "shard": ""}
TABLE = {"table": 0, "leaves": 1}
GROUP = {"group": "rng", "table": 0, "leaves": 1, "digest": "00" * 16}
MOMENT = {"moment": "step:1", "digest": "00" * 16, "seal": "00" * 16}
END = {"end": {}, "moments": 1, "seal": "00" * 16}
LINES = (METRIC, LEAF, TABLE, GROUP, MOMENT, END)


def scanned(*lines: object) -> list[RankMoment]:
    """The moments that these lines finish after a header."""
    text = "".join(json.dumps(line) + "\n" for line in (HEADER, *lines))
    return RankScanner("rank-00000.jsonl", 0).feed(text.encode())


def test_lines_of_a_writer_make_a_moment() -> None:
    (moment,) = scanned(TABLE, LEAF, METRIC, GROUP, MOMENT, END)
    assert (moment.moment, list(moment.groups)) == (Moment(1), [Group.RNG])
    assert moment.metrics == dict([parse_metric(METRIC)])
    assert (moment.leaves_at, moment.leaves_end) == (0, 16)


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": 5}, {"metric": "a\nb"}, {"metric": "\ud800"}, {"dtype": "x"}, {"dtype": ["float32"]},
        {"bits": "3dcccccd00"}, {"bits": "3dcccc"}, {"bits": "3DCCCCCD"}, {"bits": "0x3dcccc"}, {"bits": "+3dccccd"},
        {"bits": 1}, {"bits": None},
    ],
)  # fmt: skip
def test_a_metric_that_has_no_value_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(TrajectoryError, match=r"rank-00000\.jsonl was edited: the line at byte \d+"):
        scanned({**METRIC, **changes})


@given(st.sampled_from(["float64", "float32", "bfloat16", "int64", "x"]), st.text("0123456789abcdef", max_size=17))
def test_what_is_taken_for_a_metric_has_a_value(dtype: str, bits: str) -> None:
    try:
        _, metric = parse_metric({**METRIC, "dtype": dtype, "bits": bits})
    except ValueError:
        return
    assert isinstance(metric.value, float | int)


@pytest.mark.parametrize(
    "line",
    [
        {}, [], 5, {"value": 1, "metric": "loss"}, LEAF, GROUP,
        {**TABLE, "table": 1}, {**TABLE, "leaves": -1}, {**TABLE, "leaves": 1.0}, {**TABLE, "table": True},
        {**MOMENT, "moment": "step:1" + "0" * 100}, {**MOMENT, "moment": 1}, {**MOMENT, "seal": "x"},
        {**END, "end": []}, {**END, "moments": float("inf")},
    ],
)  # fmt: skip
def test_a_line_that_no_writer_wrote_is_refused_as_it_comes(line: object) -> None:
    with pytest.raises(TrajectoryError, match="was edited"):
        scanned(line)


@pytest.mark.parametrize(
    "changes",
    [{"leaf": "a\nb"}, {"leaf": "\ud800"}, {"shard": "\udfff"}, {"shape": [1] * 65}, {"shape": [float("inf")]}],
)
def test_a_leaf_that_no_writer_takes_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(TrajectoryError, match="was edited"):
        scanned(TABLE, {**LEAF, **changes})


def test_a_line_nested_without_end_is_refused() -> None:
    text = header_line(0, 1) + "[" * 100_000 + "\n"
    with pytest.raises(TrajectoryError, match="nested too deep"):
        RankScanner("rank-00000.jsonl", 0).feed(text.encode())


def test_a_moment_has_no_more_tables_than_groups() -> None:
    tables = [{"table": number, "leaves": 0} for number in range(len(Group))]
    assert scanned(*tables) == []
    with pytest.raises(TrajectoryError, match="a table out of order"):
        scanned(*tables, {"table": len(Group), "leaves": 0})


def test_a_table_with_too_few_leaves_is_named_where_it_begins() -> None:
    at = len(json.dumps(HEADER)) + 1
    with pytest.raises(TrajectoryError, match=f"the line at byte {at} .*a table with too few leaves"):
        scanned(TABLE, GROUP)


def test_a_moment_that_is_not_finished_leaves_no_table_behind() -> None:
    scanner = RankScanner("rank-00000.jsonl", 0)
    text = "".join(json.dumps(line) + "\n" for line in (HEADER, TABLE, LEAF, GROUP))
    assert scanner.feed(text.encode()) == []
    assert (scanner.tables, scanner.unfinished) == ([], True)
    assert len(scanner.feed((json.dumps(MOMENT) + "\n").encode())) == 1
    assert (len(scanner.tables), scanner.unfinished) == (1, False)


@pytest.mark.parametrize("line", [b"{}\n", b"\n", b'{"leaf":0}\n', b'{"metric":"a"}\n'])
def test_lines_of_nothing_take_no_memory(line: bytes) -> None:
    text = header_line(0, 1).encode() + line * 500_000
    tracemalloc.start()
    try:
        with pytest.raises(TrajectoryError):
            RankScanner("rank-00000.jsonl", 0).feed(text)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(text) + 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["version", "algorithm", "rank"])
def test_a_foreign_header_is_quoted_briefly(name: str) -> None:
    header = {**HEADER, name: "\x1b[2J\n" + "x" * 100_000}
    with pytest.raises(TrajectoryError) as error:
        RankScanner("rank-00000.jsonl", 0).feed((json.dumps(header) + "\n").encode())
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 500


@settings(deadline=None)
@given(lines_like([HEADER, *LINES]))
def test_any_lines_are_moments_or_refused(lines: list[object]) -> None:
    values_or_refused(*lines)


@settings(deadline=None)
@given(st.sampled_from([HEADER, *LINES]), st.data())
def test_a_whole_file_with_another_value_is_moments_or_refused(line: dict[str, Any], data: st.DataObject) -> None:
    changed = {**line, data.draw(st.sampled_from(list(line))): data.draw(anything)}
    whole = (HEADER, TABLE, LEAF, METRIC, GROUP, MOMENT, END)
    values_or_refused(*(changed if each is line else each for each in whole))


def values_or_refused(*lines: object) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    try:
        moments = RankScanner("rank-00000.jsonl", 0).feed(text.encode())
    except TrajectoryError as error:
        problem = str(error)
        assert problem.isprintable() and len(problem) < 500
        return
    for moment in moments:
        assert all(isinstance(metric.value, float | int) for metric in moment.metrics.values())


@given(st.binary(max_size=60))
def test_any_bytes_are_moments_or_refused(content: bytes) -> None:
    for start in (b"", header_line(0, 1).encode()):
        try:
            assert RankScanner("rank-00000.jsonl", 0).feed(start + content) == []
        except TrajectoryError:
            continue


def test_a_metric_spoilt_after_sealing_is_refused(tmp_path: Path) -> None:
    trajectory = Launch(ranks=1).seal(tmp_path)
    path = tmp_path / "rank-00000.jsonl"
    path.write_text(path.read_text().replace('"dtype":"float32","bits"', '"dtype":"floatXX","bits"'))
    with pytest.raises(TrajectoryError, match=r"rank-00000\.jsonl was edited: a metric at step:1 is none"):
        trajectory.metrics(0, Moment(1))
