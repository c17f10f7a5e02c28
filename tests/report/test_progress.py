from __future__ import annotations

import io
import re

import pytest

from tests.report.hostile import ATTACKS
from validator.report.pace import Pace
from validator.report.progress import NoProgress, PlainProgress, Progress, UpdatingProgress, progress_for


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drive(progress: Progress, clock: Clock, note: str = "equal so far") -> None:
    """Two launches: 10 s of start, then 4 steps of 5 s each."""
    for index, name in enumerate(("reference", "resume-1"), start=1):
        progress.launch(name, "uninterrupted", 4, index, 2)
        clock.now += 10
        progress.step(0, "")
        for done in range(1, 5):
            clock.now += 5
            progress.step(done, note)
            progress.step(done, note)
        progress.end("completed")


def test_plain_lines_come_at_intervals() -> None:
    clock, stream = Clock(), io.StringIO()
    drive(PlainProgress(stream, clock, interval=12), clock)
    assert stream.getvalue().split("\n")[:4] == [
        "[1/2] reference: uninterrupted",
        "[1/2] step 1 of 4, equal so far",
        "[1/2] step 4 of 4, equal so far, about 0 s left (check: 30 s)",
        "[1/2] completed after 30.0 s",
    ]


def test_a_terminal_gets_one_line_a_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    clock, stream = Clock(), Terminal()
    drive(UpdatingProgress(stream, clock), clock)
    shown = stream.getvalue()
    assert shown.count("\n") == 2
    assert "\r\x1b[K[1/2] reference: starting, 10.0 s" in shown
    assert "step 2 of 4, equal so far, about 10 s left (check: 40 s)" in shown
    assert shown.endswith("\r\x1b[K[2/2] resume-1: completed after 30.0 s\n")


def test_no_line_is_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    clock, stream = Clock(), Terminal()
    drive(UpdatingProgress(stream, clock), clock, note="differs since " + "x" * 200)
    assert max(len(part) for part in re.split(r"\r\x1b\[K|\n", stream.getvalue())) < 40


@pytest.mark.parametrize("text", ATTACKS)
def test_piped_progress_has_no_control_characters(text: str) -> None:
    stream, clock = io.StringIO(), Clock()
    progress = PlainProgress(stream, clock, interval=0)
    progress.launch(text, text, 3, 1, 1)
    clock.now += 1
    progress.step(1, text)
    progress.end(text)
    assert all(character == "\n" or character.isprintable() for character in stream.getvalue())
    assert stream.getvalue().count("\n") == 3


def test_the_display_suits_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(progress_for(Terminal()), UpdatingProgress)
    assert isinstance(progress_for(io.StringIO()), PlainProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress_for(Terminal()), PlainProgress)


def test_no_progress_takes_every_call() -> None:
    drive(NoProgress(), Clock())


def test_time_left_counts_from_the_steps_of_this_launch() -> None:
    pace = Pace()
    pace.launch("resume-2", 10, 1, 1, 0.0)
    pace.step(4, 20.0)  # restored from step 3: the first step that is seen is the fourth
    assert pace.left(20.0) is None
    pace.step(6, 24.0)
    assert pace.left(24.0) == 8.0
    assert pace.left(25.0) == 7.0
    assert pace.left(99.0) == 0.0


def test_launches_to_come_are_taken_as_long_as_those_before() -> None:
    pace = Pace()
    pace.launch("a", 2, 1, 3, 0.0)
    assert pace.end(40.0) == 40.0
    pace.launch("b", 4, 2, 3, 40.0)
    pace.step(1, 50.0)
    pace.step(2, 55.0)
    assert pace.left_of_check(55.0) == 10.0 + 40.0
