"""Records on disk: whole ones are read, all others are named and skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.overhead.samples import COMPUTATION, RecordedLaunches
from validator.overhead.measurement import Mode, make_plan, measure
from validator.overhead.record import RecordError, document, read_record, read_records, record_schema, render
from validator.overhead.terminal import render_terminal
from validator.pipeline.overhead import OverheadPolicy


def record(mode: Mode = Mode.FULL, factor: float = 1.3) -> dict[str, Any]:
    noise = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 1.01, 0.99]
    arms = {"deterministic": factor, "default": 1.0, "deterministic-again": 1.0}
    launches = RecordedLaunches({
        arm: [0.1 * by * noise[(i + shift) % 8] for i in range(8)] for shift, (arm, by) in enumerate(arms.items())
    })  # fmt: skip
    measurement = measure(launches, make_plan(COMPUTATION, OverheadPolicy(), mode))
    return document(
        measurement, pipeline="tiny", hardware_class="cpu-x86-64-v3-1x2", computation=COMPUTATION.digest,
        started="2026-11-29T17:00:00+00:00", seconds=100.0, stamps=(),
    )  # fmt: skip


def written(folder: Path, content: str) -> Path:
    file = folder / "overhead.json"
    file.write_text(content, encoding="utf-8")
    return file


@pytest.mark.parametrize("mode", list(Mode))
def test_a_record_comes_back_as_it_was_written_and_fits_its_schema(tmp_path: Path, mode: Mode) -> None:
    made = record(mode)
    assert read_record(written(tmp_path, render(made))) == made
    Draft202012Validator.check_schema(record_schema())
    Draft202012Validator(record_schema()).validate(made)
    assert len(render(made)) < 100_000


def changed(**changes: Any) -> str:
    return json.dumps({**record(), **changes})


def without(key: str) -> str:
    return json.dumps({name: value for name, value in record().items() if name != key})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (render(record())[:500], "broken or half-written"),
        ("", "broken or half-written"),
        ("[]", "is no overhead record: its schema is 'list'"),
        (changed(schema="validator/report"), "is no overhead record: its schema is 'validator/report'"),
        (changed(version=3), "is of version 3; this validator reads version 2"),
        (changed(arms=[]), "is broken"),
        (changed(overhead={}), "is broken"),
        (changed(decision="perhaps"), "is broken"),
        (changed(budget="a lot"), "is broken"),
        (changed(budget=float("nan")), "is broken"),
        (changed(pipeline=None), "is broken"),
        (changed(arms=[{"name": "x"}] * 2), "is broken"),
        (changed(started="yesterday"), "started is 'yesterday', and no ISO time"),
        (changed(breakdown={"phases": []}), "is broken: at breakdown, "),
        (without("breakdown"), "'breakdown' is a required property"),
        (without("stamps"), "'stamps' is a required property"),
        ("[" * 100_000, "broken or half-written"),
    ],
)
def test_anything_else_is_named_in_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(RecordError) as caught:
        read_record(file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)


def test_records_that_cannot_be_read_are_skipped_and_the_others_kept(tmp_path: Path) -> None:
    good = written(tmp_path, render(record()))
    bad = tmp_path / "half.json"
    bad.write_text(render(record())[:100])
    records, problems = read_records([bad, tmp_path / "missing.json", good])
    assert len(records) == 1
    assert [str(bad) in problems[0], "missing.json cannot be read" in problems[1]] == [True, True]


def test_the_terminal_says_the_answer_first_and_shows_both_arms() -> None:
    lines = render_terminal(record()).splitlines()
    assert lines[0].startswith("OVER BUDGET  Deterministic mode costs 30.2 %")
    assert any(line.startswith("deterministic ") and "130." in line for line in lines)
    assert any("backward" in line for line in lines)
    assert render_terminal(record(factor=1.01)).startswith("WITHIN BUDGET")
    assert render_terminal(record(Mode.NOISE, 1.0)).startswith("NOISE FLOOR")


def test_an_operators_name_does_nothing_on_the_terminal() -> None:
    made = record()
    made["breakdown"]["operators"][0]["name"] = "\x1b[2J\n::error::injected\ud800" + "x" * 100
    shown = render_terminal(made)
    assert all(line.isprintable() and len(line) < 200 for line in shown.splitlines())
    assert "\\x1b[2J\\x0a::error::injected\\ud800x" in shown
    assert shown.encode()
