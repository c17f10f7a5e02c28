"""A job's life, one step at a time. Each step is stored before and after the world is touched, so that a service that
is killed at any moment goes on where it was.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import final

from sqlalchemy import select
from sqlalchemy.orm.exc import StaleDataError

from validator.service.database import Database
from validator.service.engines.model import Engine, EngineError, Look, Order, Standing
from validator.service.jobs.moves import move, wish_publication
from validator.service.settings import Settings
from validator.service.tables import OPEN, Job, State
from validator.service.tokens import Tokens, revoke_all

log = logging.getLogger(__name__)

#: A token of a job is good for this much longer than an attempt may take, in seconds.
_TOKEN_GRACE = 3600.0


@final
class Life:
    """Moves jobs on. Only one step of a job is made at a time, whoever makes it: a row's version says so."""

    def __init__(
        self, database: Database, settings: Settings, engine: Engine, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._settings = settings
        self._engine = engine
        self._clock = clock
        self._tokens = Tokens(database, clock)

    def run_once(self) -> int:
        """Make the next step of every job that is due; gives how many were looked at. Raises ``StorageError``."""
        with self._database.read() as session:
            due = session.scalars(
                select(Job).where(Job.state.in_(OPEN), Job.after <= self._clock()).order_by(Job.id)
            ).all()
        for job in due:
            try:
                self.step(job)
            except StaleDataError:
                continue  # a webhook or a result was faster: the next round sees what it did
        return len(due)

    def step(self, job: Job) -> None:
        """The next step of one job."""
        match State(job.state):
            case State.WAITING:
                if self._engine.has_room():
                    begun = self._begin(job)
                    self._hand_over(begun, is_new=True)
            case State.HANDING:
                self._hand_over(job, is_new=False)
            case State.RUNNING:
                self._follow(job)
            case State.CANCELLING:
                self._cancel(job)

    def _begin(self, job: Job) -> Job:
        """Remember that an attempt is about to be handed over, before it is."""
        now = self._clock()

        def change(row: Job) -> None:
            row.attempt += 1
            row.handed, row.external, row.after = now, "", now
            row.progress = ""

        return self._change(job, State.HANDING, "Being handed over.", change)

    def _hand_over(self, job: Job, *, is_new: bool) -> None:
        order = self._order(job, with_token=True)
        try:
            external = None if is_new else self._engine.find(order, job.handed)
            if external is None and (is_new or self._clock() - job.handed >= self._engine.delay):
                external = self._engine.hand_over(order)
                if not external:  # the engine has it, but says its name only later
                    self._change(
                        job, State.RUNNING, "Handed over.", _waits(self._clock() + self._settings.poll_seconds)
                    )
                    return
        except EngineError as error:
            if error.unsure and self._clock() - job.handed < self._settings.job_seconds:
                log.warning("job %d: %s", job.id, error)
                self._postpone(job, self._engine.delay)  # looked for before it is handed over again
            else:
                self._failed(job, str(error), final=error.final)
            return
        if external is None:
            self._postpone(job)
            return

        def change(row: Job) -> None:
            row.external = external
            row.after = self._clock() + self._settings.poll_seconds

        self._change(job, State.RUNNING, "Handed over.", change)

    def _follow(self, job: Job) -> None:
        now = self._clock()
        order = self._order(job)
        try:
            external = job.external or self._engine.find(order, job.handed) or ""
            look = self._engine.look(order, external) if external else self._unseen(job, now)
            late = now - job.handed > self._settings.job_seconds and look.standing in (
                Standing.QUEUED,
                Standing.RUNNING,
            )
            if late and external:
                self._engine.cancel(order, external)
        except EngineError as error:
            log.warning("job %d: %s", job.id, error)
            self._postpone(job)  # the engine is away: the attempt may be doing well
            if now - job.handed > self._settings.job_seconds:
                self._failed(job, str(error))
            return
        if late:
            self._failed(job, f"The attempt took longer than {self._settings.job_seconds:.0f} s.")
        elif look.standing in (Standing.ENDED, Standing.LOST):
            self._ended(job, look, external, now)
        elif (look.sentence and look.sentence != job.progress) or external != job.external:

            def change(row: Job) -> None:
                row.external = external
                row.progress = look.sentence or row.progress
                row.after = now + self._settings.poll_seconds

            self._change(
                job,
                State.RUNNING,
                "Waits in the engine's queue." if look.standing is Standing.QUEUED else "Runs.",
                change,
            )
        else:
            self._postpone(job)

    def _unseen(self, job: Job, now: float) -> Look:
        """A hand-over that the engine took without naming it, and that is not seen yet."""
        if now - job.handed < max(60.0, 4 * self._engine.delay):
            return Look(Standing.QUEUED)
        return Look(Standing.LOST, "The engine took the job, and does not know it.")

    def _ended(self, job: Job, look: Look, external: str, now: float) -> None:
        """The engine is done and no result is here: one may still be on its way."""
        if look.standing is Standing.ENDED and not look.final and self._engine.grace:
            waiting = "Ended; its result is waited for."
            if job.sentence != waiting:
                self._change(job, State.RUNNING, waiting, _waits(now + self._engine.grace, external))
                return
        self._failed(job, look.sentence or "The attempt ended without a result.", final=look.final)

    def _cancel(self, job: Job) -> None:
        order = self._order(job)
        try:
            external = job.external or self._engine.find(order, job.handed)
            if external:
                self._engine.cancel(order, external)
            elif self._clock() - job.handed < self._engine.delay:
                self._postpone(job)  # it may show yet
                return
        except EngineError as error:
            log.warning("job %d: %s", job.id, error)
            if self._clock() - job.handed < self._settings.job_seconds:
                self._postpone(job)
                return
        self._change(job, State.CANCELLED, job.sentence, None, revoke=True)

    def _failed(self, job: Job, sentence: str, *, final: bool = False) -> None:
        """The machinery failed: another attempt, later each time, up to the limit."""
        failures = job.failures + 1
        ends = final or failures >= self._settings.attempts
        pause = self._settings.retry_seconds * 2 ** (failures - 1)

        def change(row: Job) -> None:
            row.failures = failures
            row.after = self._clock() + pause

        if ends:
            self._change(job, State.FAILED, sentence, change)
        else:
            self._change(job, State.WAITING, f"To be tried again in {pause:.0f} s: {sentence}", change)

    def _postpone(self, job: Job, seconds: float = 0.0) -> None:
        with self._database.write() as session:
            row = session.get_one(Job, job.id)
            _expect(row, job)
            row.after = self._clock() + max(seconds, self._settings.poll_seconds)

    def _change(
        self, job: Job, state: State, sentence: str, change: Callable[[Job], None] | None, *, revoke: bool = False
    ) -> Job:
        with self._database.write() as session:
            row = session.get_one(Job, job.id)
            _expect(row, job)
            if change is not None:
                change(row)
            is_shown = row.state != state or row.sentence != sentence
            now = self._clock()
            if is_shown:
                move(session, row, state, sentence, now)
                log.info("job %d (%s on %s): %s. %s", row.id, row.pipeline, row.commit[:12], state.value, sentence)
            else:
                row.changed = now
                wish_publication(session, row)
            if revoke:
                revoke_all(session, row, now)
            session.flush()
            return row

    def _order(self, job: Job, *, with_token: bool = False) -> Order:
        token = ""
        if with_token and self._engine.tokens:
            seconds = self._settings.job_seconds + _TOKEN_GRACE
            token = self._tokens.create(f"attempt {job.attempt_key}", job.repository, seconds, job.key)
        return Order(
            attempt=job.attempt_key, repository=job.repository, installation=job.installation, commit=job.commit,
            pipeline=job.pipeline, image=job.image, pull_request=job.pull_request, token=token,
        )  # fmt: skip


def _waits(until: float, external: str = "") -> Callable[[Job], None]:
    def change(row: Job) -> None:
        row.after = until
        row.external = external or row.external

    return change


def _expect(row: Job, seen: Job) -> None:
    """Nobody changed the row since it was read."""
    if row.version != seen.version:
        raise StaleDataError(f"job {row.id} was changed meanwhile")
