"""What a person sees while a check runs: one line that updates itself on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from typing import Protocol, TextIO, final

from validator.report.pace import Pace
from validator.report.text import estimate_in_words, printable, seconds_in_words, shortened, write_text

#: Seconds between two plain lines of one launch: often enough to see life, seldom enough for a CI log.
PLAIN_INTERVAL = 15.0

#: Seconds between two redraws of the line on a terminal.
REDRAW_INTERVAL = 0.1

Clock = Callable[[], float]


class Progress(Protocol):
    """Told by a check what happens. Calls come from one thread, in the order launch, step, …, step, end, launch, …"""

    def launch(self, name: str, purpose: str, steps: int, index: int, total: int) -> None:
        """A launch starts: the ``index``-th (from 1) of about ``total``, which is to reach step ``steps``."""

    def step(self, done: int, note: str) -> None:
        """Step ``done`` is finished on all ranks; ``note`` says how it stands (``equal so far``).

        May be called as often as one likes, also with the same ``done``, and with 0 while the launch is starting.
        """

    def end(self, ended: str) -> None:
        """The launch is over; ``ended`` says how (``completed``, ``killed as planned``, ``crashed``)."""


def progress_for(stream: TextIO, clock: Clock = time.monotonic) -> Progress:
    """The display that suits ``stream``: an updating line on a terminal that can, plain lines on anything else."""
    if stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb"):
        return UpdatingProgress(stream, clock)
    return PlainProgress(stream, clock)


@final
class NoProgress:
    """Shows nothing: for tests and for callers that only want the result."""

    __slots__ = ()

    def launch(self, name: str, purpose: str, steps: int, index: int, total: int) -> None:
        pass

    def step(self, done: int, note: str) -> None:
        pass

    def end(self, ended: str) -> None:
        pass


@final
class PlainProgress:
    """Lines without control characters: one when a launch starts and ends, and one in ``interval`` seconds between."""

    __slots__ = ("_clock", "_interval", "_last", "_pace", "_said", "_stream")

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic, interval: float = PLAIN_INTERVAL) -> None:
        self._stream = stream
        self._clock = clock
        self._interval = interval
        self._pace = Pace()
        self._last = 0.0
        self._said = -1

    def launch(self, name: str, purpose: str, steps: int, index: int, total: int) -> None:
        self._last = self._clock()
        self._said = -1
        self._pace.launch(printable(name), steps, index, total, self._last)
        write_text(self._stream, f"{self._pace.place} {printable(name)}: {printable(purpose)}\n")

    def step(self, done: int, note: str) -> None:
        now = self._clock()
        self._pace.step(done, now)
        if done != self._said and now - self._last >= self._interval:
            self._last, self._said = now, done
            write_text(self._stream, f"{self._pace.place} {_standing(self._pace, done, note, now)}\n")

    def end(self, ended: str) -> None:
        seconds = self._pace.end(self._clock())
        write_text(self._stream, f"{self._pace.place} {printable(ended)} after {seconds_in_words(seconds)}\n")


@final
class UpdatingProgress:
    """One line on a terminal, redrawn in place; when a launch ends its last state stays and the next begins below."""

    __slots__ = ("_clock", "_drawn", "_pace", "_stream")

    def __init__(self, stream: TextIO, clock: Clock = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._pace = Pace()
        self._drawn = 0.0

    def launch(self, name: str, purpose: str, steps: int, index: int, total: int) -> None:
        now = self._clock()
        self._pace.launch(printable(name), steps, index, total, now)
        self._draw(f"{self._pace.place} {printable(name)}: {printable(purpose)}", now)

    def step(self, done: int, note: str) -> None:
        now = self._clock()
        self._pace.step(done, now)
        if now - self._drawn >= REDRAW_INTERVAL:
            self._draw(f"{self._pace.place} {self._pace.name}: {_standing(self._pace, done, note, now)}", now)

    def end(self, ended: str) -> None:
        now = self._clock()
        seconds = self._pace.end(now)
        line = f"{self._pace.place} {self._pace.name}: {printable(ended)} after {seconds_in_words(seconds)}"
        self._draw(line, now)
        write_text(self._stream, "\n")

    def _draw(self, line: str, now: float) -> None:
        self._drawn = now
        # One column less than the terminal has, so that the line never wraps and can be redrawn from its start.
        width = max(20, shutil.get_terminal_size().columns - 1)
        write_text(self._stream, f"\r\x1b[K{shortened(line, width)}")


def _standing(pace: Pace, done: int, note: str, now: float) -> str:
    """``step 4 of 10, equal so far, about 12 s left (check: 1 min 04 s)``."""
    parts = [f"step {done} of {pace.steps}" if done > 0 else f"starting, {seconds_in_words(pace.elapsed(now))}"]
    if note:
        parts.append(printable(note))
    left, whole = pace.left(now), pace.left_of_check(now)
    if left is not None and whole is not None:
        parts.append(f"about {estimate_in_words(left)} left (check: {estimate_in_words(whole)})")
    return ", ".join(parts)
