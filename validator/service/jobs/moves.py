"""A job's or change's next state, and letting go of what nobody waits for."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from validator.service.tables import OPEN, Change, ChangeState, Job, Publication, State


def move(session: Session, job: Job, state: State, sentence: str, now: float) -> None:
    """Give a job its next state, and ask for its check run to show it."""
    job.state, job.sentence, job.changed = state, sentence, now
    wish_publication(session, job)
    show_again(session, job.repository, job.commit)


def wish_publication(session: Session, job: Job) -> None:
    """The check run is to show the job as it is now; an end is shown at once, progress in its turn."""
    change = update(Publication).where(Publication.job_id == job.id).values(wanted=Publication.wanted + 1)
    session.execute(change.values(after=0.0) if State(job.state).is_final else change)


def show_again(session: Session, repository: str, commit: str) -> None:
    """The aggregate check run of the commit is to be looked at anew."""
    session.execute(
        update(Change).where(Change.repository == repository, Change.commit == commit).values(wanted=Change.wanted + 1)
    )


def abandon(
    session: Session, repository: str, line: str, why: str, now: float, *, pipelines: Iterable[str] | None = None,
    but: str = "", only: str = "", until: float | None = None, only_waiting: bool = False,
) -> int:  # fmt: skip
    """Let go of the open jobs of a line: those of ``pipelines`` (``None``: all), of other commits than ``but`` or of
    ``only`` that one, asked for until a time. Gives their number.
    """
    chosen = select(Job).where(Job.repository == repository, Job.line == line, Job.state.in_(OPEN))
    if pipelines is not None:
        chosen = chosen.where(Job.pipeline.in_(tuple(pipelines)))
    if until is not None:
        chosen = chosen.where(Job.asked <= until)
    jobs = [job for job in session.scalars(chosen) if job.commit != but and only in ("", job.commit)]
    if only_waiting:
        jobs = [job for job in jobs if job.state == State.WAITING]
    for job in jobs:
        move(session, job, State.CANCELLED if job.state == State.WAITING else State.CANCELLING, why, now)
    return len(jobs)


def let_go(
    session: Session, repository: str, line: str, why: str, *, but: str = "", only: str = "",
    until: float | None = None, only_asked: bool = False,
) -> int:  # fmt: skip
    """Let go of the changes of a line, chosen like the jobs of :func:`abandon`; ``only_asked`` spares those that have
    jobs. Gives the number of those that had none yet.
    """
    chosen = select(Change).where(
        Change.repository == repository, Change.line == line, Change.state != ChangeState.LET_GO
    )
    if until is not None:
        chosen = chosen.where(Change.asked <= until)
    changes = [row for row in session.scalars(chosen) if row.commit != but and only in ("", row.commit)]
    if only_asked:
        changes = [row for row in changes if row.state == ChangeState.ASKED]
    unplanned = sum(row.state == ChangeState.ASKED for row in changes)
    for row in changes:
        row.state, row.sentence = ChangeState.LET_GO, why
        row.wanted += 1
    return unplanned


def is_lasting(line: str) -> bool:
    """A long-lived line ends what it began and drops only what waits; a pull request drops all of the old."""
    return line.startswith(("branch ", "image "))
