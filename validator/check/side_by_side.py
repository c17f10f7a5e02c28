"""Launches of a check that do not wait for one another run at the same time, where the host has devices for them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, final

from validator.check.launches import Launched, Launches, Standing
from validator.check.plan import LaunchPlan
from validator.execute.launch import Executor
from validator.report.model import LaunchRow
from validator.report.progress import Progress


class Displays(Protocol):
    """Makes the display of one launch among several (``Lanes``)."""

    def lane(self) -> Progress: ...


class NotNeededError(BaseException):
    """Ends a launch that nobody asks for any more. No ``Exception``: nothing on the way may take it for a failure."""


@dataclass(eq=False, slots=True)
class _Ahead:
    """One launch: waiting, running with ``executor``, or over with ``launched`` or ``error``."""

    plan: LaunchPlan
    standing: Standing | None = None
    executor: Executor | None = None
    thread: threading.Thread | None = None
    launched: Launched | None = None
    error: BaseException | None = None
    rows: list[LaunchRow] = field(default_factory=list)
    asked: bool = False
    taken: bool = False

    @property
    def is_over(self) -> bool:
        return self.launched is not None or self.error is not None


@final
class SideBySide:
    """Starts launches as soon as there are devices, and hands each over when its gate asks for it.

    ``executors`` are one for each launch at a time; with fewer than two, launches run one after the other, each when it
    is asked for. The gates see no difference: results, failures and report rows come in the order in which they ask.
    """

    def __init__(
        self, launches: Launches, executors: Sequence[Executor] = (), displays: Displays | None = None
    ) -> None:
        self._launches = launches
        self._free = list(executors) if len(executors) > 1 and displays is not None else []
        self._displays = displays
        self._in_turn = not self._free
        self._ordered: list[_Ahead] = []
        self._started = 0
        self._not_needed = False
        self._changed = threading.Condition()

    def expect(self, plans: Sequence[LaunchPlan], standings: Mapping[str, Standing]) -> None:
        """Start these ahead, the first ones first. ``standings`` are the live comparisons that are possible already."""
        if self._in_turn:
            return
        with self._changed:
            self._ordered += [_Ahead(plan, standings.get(plan.name)) for plan in plans]
            self._start_what_can()

    def take(self, plan: LaunchPlan, standing: Standing | None = None) -> Launched:
        """The launch, once it is over. Raises what it raised."""
        if self._in_turn:
            return self._launches.run(plan, standing)
        with self._changed:
            ahead = next((each for each in self._ordered if each.plan == plan), None)
            if ahead is None:
                ahead = _Ahead(plan, standing)
                self._ordered.insert(0, ahead)
            ahead.asked = True
            self._start_what_can()
            while not ahead.is_over:
                self._changed.wait()
            ahead.taken = True
        self._launches.rows.extend(ahead.rows)
        if ahead.launched is None:
            assert ahead.error is not None
            raise ahead.error
        return ahead.launched

    def close(self) -> None:
        """End what runs and was not asked for. Afterwards nothing runs, and nothing starts."""
        with self._changed:
            self._not_needed = True
            threads = [each.thread for each in self._ordered if each.thread is not None]
        for thread in threads:
            thread.join()
        for each in self._ordered:
            if not each.taken:
                each.taken = True
                self._launches.rows.extend(each.rows)

    def _start_what_can(self) -> None:
        """Called with the lock held. After a failure nothing starts but what is asked for, until a gate has seen it."""
        failed = any(each.error is not None and not each.taken for each in self._ordered)
        waiting = [each for each in self._ordered if each.thread is None]
        for ahead in waiting:
            if not self._free or self._not_needed:
                return
            if self._is_ready(ahead.plan) and (ahead.asked or not failed):
                self._started += 1
                ahead.executor = self._free.pop(0)
                thread = threading.Thread(target=self._carry_out, args=(ahead, self._started), name=ahead.plan.name)
                thread.start()
                ahead.thread = thread

    def _is_ready(self, plan: LaunchPlan) -> bool:
        """Whether the launch that saves what this one restores, if any, is over and was no failure."""
        if plan.load_from is None:
            return True
        return any(each.plan.name == plan.load_from and each.launched is not None for each in self._ordered)

    def _carry_out(self, ahead: _Ahead, index: int) -> None:
        assert ahead.executor is not None
        assert self._displays is not None
        display = _Stoppable(self, self._displays.lane(), index)
        own = replace(self._launches, executor=ahead.executor, progress=display, rows=ahead.rows, base=None)
        launched: Launched | None = None
        error: BaseException | None = None
        try:
            launched = own.run(ahead.plan, ahead.standing)
        except BaseException as raised:
            error = raised
        with self._changed:
            if isinstance(error, NotNeededError):
                ahead.rows[:] = [replace(row, ended=NOT_NEEDED) for row in ahead.rows]
            ahead.launched, ahead.error = launched, error
            self._free.append(ahead.executor)
            self._start_what_can()
            self._changed.notify_all()

    @property
    def expected(self) -> int:
        """How many launches the check is likely to have."""
        return self._launches.total

    @property
    def is_stopping(self) -> bool:
        """Whether launches that still run are to end."""
        return self._not_needed


#: How a launch ended that an earlier gate made superfluous.
NOT_NEEDED = "not needed any more"


@final
@dataclass(slots=True)
class _Stoppable:
    """The display of one launch, which every executor talks to again and again: the place to end it from."""

    side: SideBySide
    display: Progress
    index: int

    def launch(self, name: str, purpose: str, steps: int, index: int, total: int) -> None:  # noqa: ARG002
        self.display.launch(name, purpose, steps, self.index, self.side.expected)

    def step(self, done: int, note: str) -> None:
        if self.side.is_stopping:
            raise NotNeededError
        self.display.step(done, note)

    def end(self, ended: str) -> None:
        self.display.end(NOT_NEEDED if self.side.is_stopping and ended == "interrupted" else ended)
