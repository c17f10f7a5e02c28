"""From what was asked for to rows, in one transaction: nothing is stored twice, and what is superseded is let go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from validator.service.jobs.changes import change_key, take_change
from validator.service.jobs.moves import abandon, is_lasting, let_go, move, show_again
from validator.service.tables import OPEN, Change, Job, Publication, Request, State
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
            if ask.base or ask.image:
                return Taken(*take_change(session, ask, now))
            return check(session, ask, pipelines, now)
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
            repository, why = ask.source.repository, "Nobody waits for it any more."
            ended = abandon(session, repository, ask.line, why, now, only=ask.commit)
            ended += let_go(session, repository, ask.line, why, only=ask.commit)
            return Taken("accepted" if ended else "ignored", f"{ended} checks of {ask.line} were let go.")


def job_by_attempt(session: Session, attempt_key: str) -> tuple[Job, int] | None:
    """The job, and the number of the attempt, that an engine knows by this key."""
    short, _, number = attempt_key.rpartition("-")
    if len(short) != 20 or not short.isalnum() or not number.isdigit() or len(number) > 4:
        return None
    job = session.scalars(select(Job).where(Job.key.startswith(short, autoescape=True))).first()
    return (job, int(number)) if job is not None and 1 <= int(number) <= job.attempt else None


def check(session: Session, ask: CheckCommit, pipelines: Sequence[str], now: float) -> Taken:
    """A job for each of these pipelines, whatever the change calls for."""
    source, asked = ask.source, ask.asked or now
    added: list[str] = []
    known: list[str] = []
    lasting = is_lasting(ask.line)
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
        return _all_again(session, ask, now)
    wish = CheckCommit(
        ask.source, old.commit, old.line, old.pull_request, "rerun", ask.subject, old.image, asked=old.asked
    )
    return check(session, wish, [old.pipeline], now)


def _all_again(session: Session, ask: RunAgain, now: float) -> Taken:
    """The button of an aggregate check run: every pipeline that the change calls for."""
    row = session.scalars(select(Change).where(Change.key == change_key(ask.job_key))).first()
    if row is None or row.repository != ask.source.repository:
        return Taken("ignored", "The check run belongs to no job of this service.")
    wish = CheckCommit(
        ask.source, row.commit, row.line, row.pull_request, "rerun", ask.subject, row.image, asked=row.asked
    )
    return check(session, wish, row.pipelines.split(), now)


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
    show_again(session, job.repository, job.commit)
