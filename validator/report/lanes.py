"""What a person sees of launches that run side by side: a part each of a terminal's line, plain lines elsewhere."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import TextIO, final

from validator.report.pace import Pace
from validator.report.progress import PLAIN_INTERVAL, REDRAW_INTERVAL, Clock
from validator.report.text import estimate_in_words, printable, seconds_in_words, shortened, write_text


@final
class Lanes:
    """One stream that several launches write to, each through a ``Lane`` on a thread of its own."""

    def __init__(
        self,
        stream: TextIO,
        clock: Clock = time.monotonic,
        interval: float = PLAIN_INTERVAL,
        *,
        updating: bool | None = None,
    ) -> None:
        self._stream = stream
        self._clock = clock
        terminal = stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
        self._updating = terminal if updating is None else updating
        self._interval = REDRAW_INTERVAL if self._updating else interval
        self._drawn = 0.0
        self._running: list[Lane] = []
        self._lock = threading.Lock()

    def lane(self) -> Lane:
        """The display of one launch."""
        return Lane(self)

    def begin(self, lane: Lane, purpose: str) -> None:
        """A launch begins."""
        with self._lock:
            self._running.append(lane)
            lane.said = self._clock()
            if self._updating:
                self._draw()
            else:
                write_text(self._stream, f"{lane.pace.place} {lane.pace.name}: {printable(purpose)}\n")

    def show(self, lane: Lane) -> None:
        """A launch has gone on."""
        now = self._clock()
        with self._lock:
            if self._updating and now - self._drawn >= self._interval:
                self._draw()
            elif not self._updating and lane.changed and now - lane.said >= self._interval:
                lane.said, lane.changed = now, False
                write_text(self._stream, f"{lane.line(now)}\n")

    def finish(self, lane: Lane, ended: str) -> None:
        """A launch is over: its last line stays."""
        now = self._clock()
        with self._lock:
            self._running.remove(lane)
            line = (
                f"{lane.pace.place} {lane.pace.name}: {printable(ended)} after {seconds_in_words(lane.pace.end(now))}"
            )
            if not self._updating:
                write_text(self._stream, f"{line}\n")
                return
            write_text(self._stream, f"\r\x1b[K{shortened(line, _width())}\n")
            if self._running:
                self._draw()

    def now(self) -> float:
        """Seconds of the clock that all lanes go by."""
        return self._clock()

    def _draw(self) -> None:
        self._drawn = now = self._clock()
        line = " | ".join(lane.line(now) for lane in self._running)
        write_text(self._stream, f"\r\x1b[K{shortened(line, _width())}")


@final
class Lane:
    """The display of one launch among several (``Progress``)."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._note = ""
        self._done = 0
        self.pace = Pace()
        self.said = 0.0
        self.changed = False

    def launch(self, name: str, purpose: str, steps: int, index: int, total: int) -> None:
        self.pace.launch(printable(name), steps, index, total, self._lanes.now())
        self._lanes.begin(self, purpose)

    def step(self, done: int, note: str) -> None:
        self.pace.step(done, self._lanes.now())
        self.changed = self.changed or done != self._done
        self._done, self._note = done, note or self._note
        self._lanes.show(self)

    def end(self, ended: str) -> None:
        self._lanes.finish(self, ended)

    def line(self, now: float) -> str:
        """``[2/5] resume-1: step 4 of 10, about 12 s left``."""
        pace, left = self.pace, self.pace.left(now)
        standing = (
            f"step {self._done} of {pace.steps}"
            if self._done > 0
            else f"starting, {seconds_in_words(pace.elapsed(now))}"
        )
        parts = [standing, *([printable(self._note)] if self._note else [])]
        parts += [f"about {estimate_in_words(left)} left"] if left is not None else []
        return f"{pace.place} {pace.name}: {', '.join(parts)}"


def _width() -> int:
    """One column less than the terminal has, so that the line never wraps and can be redrawn from its start."""
    return max(20, shutil.get_terminal_size().columns - 1)
