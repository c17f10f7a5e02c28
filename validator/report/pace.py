"""How fast launches go, and how long the rest will take. Times are seconds of one monotonic clock, handed in."""

from __future__ import annotations

from typing import final


@final
class Pace:
    """Follows the launches of one check; holds no clock of its own."""

    __slots__ = ("_begun", "_done", "_finished", "_first", "_latest", "index", "name", "steps", "total")

    def __init__(self) -> None:
        self._finished: list[float] = []
        self._begin("", 0, 0, 0, 0.0)

    def launch(self, name: str, steps: int, index: int, total: int, now: float) -> None:
        """A launch begins that is to reach step ``steps``."""
        self._begin(name, steps, index, total, now)

    def _begin(self, name: str, steps: int, index: int, total: int, now: float) -> None:
        self.name, self.steps, self.index, self.total = name, steps, index, max(total, index)
        self._begun = now
        self._done = 0
        self._first: tuple[int, float] | None = None
        self._latest: tuple[int, float] | None = None

    def step(self, done: int, now: float) -> None:
        """Step ``done`` has been seen as finished; the same one again changes nothing."""
        if done <= self._done:
            return
        self._done = done
        self._latest = (done, now)
        if self._first is None:
            self._first = self._latest

    def end(self, now: float) -> float:
        """The launch is over; its duration in seconds."""
        seconds = self.elapsed(now)
        self._finished.append(seconds)
        return seconds

    @property
    def place(self) -> str:
        """``[2/5]``: this launch among those of the check."""
        return f"[{self.index}/{self.total}]"

    def elapsed(self, now: float) -> float:
        """Seconds since the launch began."""
        return now - self._begun

    def left(self, now: float) -> float | None:
        """Seconds until this launch reaches its last step, ``None`` before two steps are there to tell from."""
        if self._first is None or self._latest is None or self._latest == self._first:
            return None
        each = (self._latest[1] - self._first[1]) / (self._latest[0] - self._first[0])
        return max(0.0, each * (self.steps - self._latest[0]) - (now - self._latest[1]))

    def left_of_check(self, now: float) -> float | None:
        """Seconds until the last launch ends, taking those to come as long as those that are over (or as this one)."""
        left = self.left(now)
        if left is None:
            return None
        typical = sum(self._finished) / len(self._finished) if self._finished else self.elapsed(now) + left
        return left + typical * (self.total - self.index)
