"""From what was asked for to rows, in one transaction: nothing is stored twice, and what is superseded is let go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from validator.service.tables import OPEN, Job, Publication, Request, State
from validator.service.webhooks.asks import (
    Abandon,
    Accept,
    Ask,
    CheckCommit,
    CheckPull,
    Nothing,
    RunAgain,
    Source,
    key_of,
)


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a wish: ``accepted``, ``duplicate`` or ``ignored``, and a sentence."""

    outcome: str
    sentence: str


def take_in(session: Session, ask: Ask, pipelines: Sequence[str], now: float) -> Taken:
    """Store what is asked for. Never calls GitHub: what needs it is stored as a request."""
    match ask:
        case Nothing(why):
            return Taken("ignored", why)
        case CheckCommit():
            return _check(session, ask, pipelines, now)
        case RunAgain():
            return _again(session, ask, now)
        case Accept():
            return _accept(session, ask, now)
        case CheckPull():
            request = Request(
                key=key_of("check", ask.source.repository, ask.subject), kind="check", job_id=None,
                pull_request=ask.pull_request, commit=ask.commit,
            )  # fmt: skip
            return _request(session, request, ask.source, f"Pull request {ask.pull_request} is to be checked.", now)
        case Abandon():
            ended = abandon(session, ask.source.repository, ask.line, "Nobody waits for it any more.", now)
            return Taken("accepted" if ended else "ignored", f"{ended} jobs of {ask.line} were let go.")


def abandon(
    session: Session, repository: str, line: str, why: str, now: float, *, pipelines: Iterable[str] | None = None,
    but: str = "", until: float | None = None, only_waiting: bool = False,
) -> int:  # fmt: skip
    """Let go of the open jobs of a line: those of ``pipelines`` (``None``: all), of other commits than ``but``, asked
    for until a time. Gives their number.
    """
    chosen = select(Job).where(Job.repository == repository, Job.line == line, Job.state.in_(OPEN))
    if pipelines is not None:
        chosen = chosen.where(Job.pipeline.in_(tuple(pipelines)))
    if until is not None:
        chosen = chosen.where(Job.asked <= until)
    jobs = [job for job in session.scalars(chosen) if job.commit != but]
    if only_waiting:
        jobs = [job for job in jobs if job.state == State.WAITING]
    for job in jobs:
        move(session, job, State.CANCELLED if job.state == State.WAITING else State.CANCELLING, why, now)
    return len(jobs)


def move(session: Session, job: Job, state: State, sentence: str, now: float) -> None:
    """Give a job its next state, and ask for its check run to show it."""
    job.state, job.sentence, job.changed = state, sentence, now
    wish_publication(session, job)


def wish_publication(session: Session, job: Job) -> None:
    """The check run is to show the job as it is now; an end is shown at once, progress in its turn."""
    change = update(Publication).where(Publication.job_id == job.id).values(wanted=Publication.wanted + 1)
    session.execute(change.values(after=0.0) if State(job.state).is_final else change)


def job_by_attempt(session: Session, attempt_key: str) -> tuple[Job, int] | None:
    """The job, and the number of the attempt, that an engine knows by this key."""
    short, _, number = attempt_key.rpartition("-")
    if len(short) != 20 or not short.isalnum() or not number.isdigit() or len(number) > 4:
        return None
    job = session.scalars(select(Job).where(Job.key.startswith(short, autoescape=True))).first()
    return (job, int(number)) if job is not None and 1 <= int(number) <= job.attempt else None


def _check(session: Session, ask: CheckCommit, pipelines: Sequence[str], now: float) -> Taken:
    source, asked = ask.source, ask.asked or now
    added: list[str] = []
    known: list[str] = []
    # A long-lived line ends what it began, and drops only what had not started; a pull request drops all of the old.
    lasting = ask.line.startswith(("branch ", "image "))
    for pipeline in pipelines:
        key = key_of(source.repository, ask.commit, pipeline, ask.action, ask.subject)
        if (old := _same(session, ask, pipeline, key)) is not None:
            (added if _revived(session, old, asked, now) else known).append(pipeline)
            continue
        newer = session.scalars(
            select(Job.commit).where(
                Job.repository == source.repository, Job.line == ask.line, Job.pipeline == pipeline,
                Job.asked > asked, Job.commit != ask.commit,
            )
        ).first()  # fmt: skip
        _add(
            session,
            Job(
                key=key, repository=source.repository, commit=ask.commit, pipeline=pipeline, action=ask.action,
                line=ask.line, pull_request=ask.pull_request, image=ask.image, installation=source.installation,
                requester=source.requester, asked=asked,
                state=State.WAITING if newer is None else State.CANCELLED,
                sentence="" if newer is None else f"Superseded by {newer[:12]}.",
            ),
            now,
        )  # fmt: skip
        added.append(pipeline)
    if added:
        why = f"Superseded by {ask.commit[:12]}."
        abandon(
            session, source.repository, ask.line, why, now, pipelines=added, but=ask.commit, until=asked,
            only_waiting=lasting,
        )  # fmt: skip
    if not pipelines:
        return Taken("ignored", "No pipeline is called for.")
    if not added:
        return Taken("duplicate", f"The same was asked for before: {', '.join(known)} on {ask.commit[:12]}.")
    return Taken("accepted", f"{', '.join(added)} on {ask.commit[:12]}.")


def _same(session: Session, ask: CheckCommit, pipeline: str, key: str) -> Job | None:
    """The job that answers this wish; one that runs answers a wish to run again as well."""
    found = session.scalars(select(Job).where(Job.key == key)).first()
    if found is None and ask.action == "rerun":
        found = session.scalars(
            select(Job).where(
                Job.repository == ask.source.repository, Job.commit == ask.commit, Job.pipeline == pipeline,
                Job.state.in_(OPEN),
            )
        ).first()  # fmt: skip
    return found


def _revived(session: Session, job: Job, asked: float, now: float) -> bool:
    """Take up a job again that was let go and is asked for anew: a pull request reopened, or pushed back."""
    if job.state not in (State.CANCELLED, State.CANCELLING) or asked <= job.asked:
        return False
    job.asked, job.failures, job.after = asked, 0, 0.0
    move(session, job, State.RUNNING if job.state == State.CANCELLING else State.WAITING, "", now)
    return True


def _again(session: Session, ask: RunAgain, now: float) -> Taken:
    old = _job(session, ask.job_key, ask.source)
    if old is None:
        return Taken("ignored", "The check run belongs to no job of this service.")
    wish = CheckCommit(
        ask.source, old.commit, old.line, old.pull_request, "rerun", ask.subject, old.image, asked=old.asked
    )
    return _check(session, wish, [old.pipeline], now)


def _accept(session: Session, ask: Accept, now: float) -> Taken:
    job = _job(session, ask.job_key, ask.source)
    if job is None:
        return Taken("ignored", "The check run belongs to no job of this service.")
    # One wish a person and check run: another owner may ask where the first was refused.
    request = Request(
        key=key_of("rebaseline", ask.source.repository, ask.subject, ask.source.requester), kind="rebaseline",
        job_id=job.id, pull_request=job.pull_request, commit=job.commit,
    )  # fmt: skip
    return _request(session, request, ask.source, f"{job.pipeline} is to be re-baselined.", now)


def _request(session: Session, request: Request, source: Source, sentence: str, now: float) -> Taken:
    if session.scalars(select(Request.id).where(Request.key == request.key)).first() is not None:
        return Taken("duplicate", "The same was asked for before.")
    request.repository, request.installation, request.person = source.repository, source.installation, source.requester
    request.created = now
    session.add(request)
    return Taken("accepted", sentence)


def _job(session: Session, key: str, source: Source) -> Job | None:
    return session.scalars(select(Job).where(Job.key == key, Job.repository == source.repository)).first()


def _add(session: Session, job: Job, now: float) -> None:
    job.created = job.changed = now
    session.add(job)
    session.flush()
    session.add(Publication(job_id=job.id))
