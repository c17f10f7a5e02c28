"""What the database has of jobs, results, changes and deliveries."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from sqlalchemy import ScalarResult, Select, func, select
from sqlalchemy.orm import Session

from validator.report.model import Verdict
from validator.service.tables import Change, ChangeState, Delivery, Job, Publication, Request, Result, State
from validator.service.views.models import (
    ChangeView,
    DeliveryView,
    Filters,
    HistoryRow,
    JobDetail,
    JobList,
    JobView,
    RequestView,
    ResultView,
)

PAGE = 50


def list_jobs(session: Session, filters: Filters, page: int) -> JobList:
    """One page of jobs, newest first; a page past the last is the last."""
    chosen = _filtered(select(Job), filters)
    total = session.scalar(select(func.count()).select_from(chosen.subquery())) or 0
    pages = max(1, -(-total // PAGE))
    page = min(max(1, page), pages)
    rows: ScalarResult[Job] = session.scalars(chosen.order_by(Job.id.desc()).limit(PAGE).offset((page - 1) * PAGE))
    return JobList(jobs=[job_view(row) for row in rows], total=total, page=page, pages=pages)


def job_detail(session: Session, number: int) -> JobDetail | None:
    """A job with its results and requests, ``None`` where there is none of that number."""
    job = session.get(Job, number) if number < 2**63 else None
    if job is None:
        return None
    results = session.scalars(select(Result).where(Result.job_id == job.id).order_by(Result.attempt))
    requests = session.scalars(select(Request).where(Request.job_id == job.id).order_by(Request.id))
    publication = session.get(Publication, job.id)
    return JobDetail(
        **job_view(job).model_dump(),
        results=[result_view(each) for each in results],
        requests=[
            RequestView(
                kind=each.kind,
                person=each.person,
                state=each.state,
                sentence=each.sentence,
                created=_time(each.created),
            )
            for each in requests
        ],
        check_run=None if publication is None else publication.check_run,
        publication="" if publication is None else publication.problem,
    )


def history(session: Session, pipeline: str, most: int = 200) -> list[HistoryRow]:
    """The latest results of a pipeline that decide something, newest first."""
    found = session.execute(
        select(Result, Job)
        .join(Job, Job.id == Result.job_id)
        .where(Result.pipeline == pipeline)
        .order_by(Result.id.desc())
        .limit(most)
    )
    return [
        HistoryRow(
            job=job.id, attempt=result.attempt, repository=job.repository, commit=job.commit, line=job.line,
            result=result_view(result),
        )
        for result, job in found
    ]  # fmt: skip


def deliveries(session: Session, most: int = 100) -> list[DeliveryView]:
    """The latest deliveries, newest first."""
    found = session.scalars(select(Delivery).order_by(Delivery.received.desc()).limit(most))
    return [
        DeliveryView(
            guid=each.guid, event=each.event, action=each.action, outcome=each.outcome, sentence=each.sentence,
            received=_time(each.received),
        )
        for each in found
    ]  # fmt: skip


def changes(session: Session, most: int = 100) -> list[ChangeView]:
    """The latest changes, newest first."""
    found = session.scalars(select(Change).order_by(Change.id.desc()).limit(most))
    return [
        ChangeView(
            repository=each.repository, commit=each.commit, base=each.base, line=each.line, action=each.action,
            state=ChangeState(each.state).value, sentence=each.sentence, pipelines=each.pipelines.split(),
            findings=each.findings.splitlines(), check_run=each.check_run, created=_time(each.created),
        )
        for each in found
    ]  # fmt: skip


def values(session: Session) -> dict[str, list[str]]:
    """What the filters of a list can be set to."""
    return {
        "state": [state.value for state in State],
        "verdict": [verdict.value for verdict in Verdict],
        "pipeline": list(session.scalars(select(Job.pipeline).distinct().order_by(Job.pipeline))),
        "repository": list(session.scalars(select(Job.repository).distinct().order_by(Job.repository))),
    }


def job_view(job: Job) -> JobView:
    return JobView(
        id=job.id, repository=job.repository, commit=job.commit, pipeline=job.pipeline, action=job.action,
        line=job.line, pull_request=job.pull_request, requester=job.requester, state=State(job.state).value,
        verdict=job.verdict, sentence=job.sentence, progress=job.progress, attempt=job.attempt,
        created=_time(job.created), changed=_time(job.changed),
    )  # fmt: skip


def result_view(result: Result) -> ResultView:
    return ResultView(
        attempt=result.attempt, digest=result.digest, received=_time(result.received), verdict=result.verdict,
        claimed=result.claimed, sentence=result.sentence, gating=result.gating, hardware_class=result.hardware_class,
        seconds=result.seconds, overhead=result.overhead, overhead_low=result.overhead_low,
        overhead_high=result.overhead_high,
    )  # fmt: skip


def _filtered(chosen: Select[Job], filters: Filters) -> Select[Job]:
    for column, value in (
        (Job.state, filters.state), (Job.verdict, filters.verdict), (Job.pipeline, filters.pipeline),
        (Job.repository, filters.repository),
    ):  # fmt: skip
        if value:
            chosen = chosen.where(column == value)
    if filters.pull_request:
        number = int(filters.pull_request) if filters.pull_request.isdigit() and len(filters.pull_request) < 10 else -1
        chosen = chosen.where(Job.pull_request == number)
    if filters.commit:
        chosen = chosen.where(Job.commit.startswith(filters.commit.strip().lower(), autoescape=True))
    return chosen


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds or time.time(), UTC).replace(microsecond=0)
