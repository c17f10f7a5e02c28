"""What is seen of launches that run side by side."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pytest

from validator.report.lanes import Lanes


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_plain_lines_name_their_launch_and_come_in_intervals_of_each(stream: io.StringIO) -> None:
    clock = Clock()
    lanes = Lanes(stream, clock, interval=10.0)
    one, other = lanes.lane(), lanes.lane()
    one.launch("reference", "uninterrupted", 10, 1, 5)
    other.launch("resume-1", "saves\nstep 3", 5, 2, 5)
    for second in range(1, 22):
        clock.now = float(second)
        one.step(second // 5, "equal to the golden so far")
        other.step(second // 4, "")
    one.end("completed")
    other.end("killed as planned")
    assert stream.getvalue().splitlines() == [
        "[1/5] reference: uninterrupted",
        "[2/5] resume-1: saves\\x0astep 3",
        "[1/5] reference: step 2 of 10, equal to the golden so far, about 40 s left",
        "[2/5] resume-1: step 2 of 5, about 10 s left",
        "[1/5] reference: step 4 of 10, equal to the golden so far, about 30 s left",
        "[2/5] resume-1: step 5 of 5, about 0 s left",
        "[1/5] reference: completed after 21.0 s",
        "[2/5] resume-1: killed as planned after 21.0 s",
    ]


def test_a_terminal_shows_all_in_one_line_and_keeps_the_last_of_each(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    clock = Clock()
    lanes = Lanes(stream, clock, updating=True)
    one, other = lanes.lane(), lanes.lane()
    one.launch("reference", "uninterrupted", 10, 1, 2)
    other.launch("repeat", "the same again", 10, 2, 2)
    clock.now = 3.0
    one.step(4, "")
    one.end("completed")
    other.end("completed")
    drawn = stream.getvalue().split("\r\x1b[K")
    assert drawn[2] == "[1/2] reference: starting, 0.0 s | [2/2] repeat: starting, 0.0 s"
    assert drawn[3] == "[1/2] reference: step 4 of 10 | [2/2] repeat: starting, 3.0 s"
    assert drawn[4] == "[1/2] reference: completed after 3.0 s\n"
    assert drawn[5] == "[2/2] repeat: starting, 3.0 s"
    assert drawn[6] == "[2/2] repeat: completed after 3.0 s\n"


def test_a_line_never_wraps(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lanes = Lanes(stream, Clock(), updating=True)
    for number in range(4):
        lanes.lane().launch(f"launch-{number}", "", 10, number, 4)
    assert all(len(line) < 40 for line in stream.getvalue().split("\r\x1b[K"))
