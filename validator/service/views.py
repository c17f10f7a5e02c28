"""What people and programs are shown: plain values, read from the database and the base revision."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Literal

from pydantic import BaseModel, Field
from sqlalchemy import ScalarResult, Select, func, select
from sqlalchemy.orm import Session

from validator.errors import ValidatorError
from validator.golden import GoldenStore, log
from validator.golden.history import NoHistoryError
from validator.pipeline import find_pipelines, load_pipeline
from validator.report.model import Verdict
from validator.service.settings import Settings
from validator.service.tables import Delivery, Job, Publication, Request, Result, State

PAGE = 50

StateName = Literal["waiting", "handing", "running", "cancelling", "ended", "failed", "cancelled"]


class JobView(BaseModel):
    """One check that was asked for."""

    id: int
    repository: str
    commit: str
    pipeline: str
    action: str = Field(description="check, rerun, image or pushed: why it was asked for")
    line: str = Field(description="what commits follow one another on")
    pull_request: int | None
    requester: str
    state: StateName
    verdict: str = Field(description="empty until a result counts")
    sentence: str
    progress: str
    attempt: int
    created: datetime
    changed: datetime


class ResultView(BaseModel):
    """A result that was taken in, as it was judged anew."""

    attempt: int
    digest: str
    received: datetime
    verdict: str
    claimed: str = Field(description="the runner's own verdict")
    sentence: str
    gating: bool = Field(description="false for a stamped run, which decides nothing")
    hardware_class: str
    seconds: float
    overhead: float | None
    overhead_low: float | None
    overhead_high: float | None


class RequestView(BaseModel):
    """A press of the re-baseline button, or a comment that asks for a check."""

    kind: str
    person: str
    state: str
    sentence: str
    created: datetime


class JobDetail(JobView):
    """One job, with everything that is known of it."""

    results: list[ResultView]
    requests: list[RequestView]
    check_run: int | None
    publication: str = Field(description="what keeps the check run from being up to date; empty where it is")


class JobList(BaseModel):
    """One page of jobs, newest first."""

    jobs: list[JobView]
    total: int
    page: int
    pages: int


class HistoryRow(BaseModel):
    """One result in a pipeline's history."""

    job: int
    attempt: int
    repository: str
    commit: str
    line: str
    result: ResultView


class GoldenVersion(BaseModel):
    """One golden of a chain, as git has it."""

    commit: str
    date: str
    author: str
    digest: str
    approver: str
    reason: str


class GoldenView(BaseModel):
    """The golden of one pipeline on one hardware class, and those before it."""

    pipeline: str
    hardware_class: str
    digest: str
    recorded: date
    approver: str
    requester: str
    reason: str
    change: str | None
    launches: int
    resume: str
    supersedes: str | None
    chain: list[GoldenVersion]
    problem: str = ""


class WaiverView(BaseModel):
    """A known defect that the policy tolerates until a day."""

    pipeline: str
    gate: str
    leaf: str
    reason: str
    link: str
    expires: date
    days_left: int


class DeliveryView(BaseModel):
    """A webhook that was authenticated, and what became of it."""

    guid: str
    event: str
    action: str
    outcome: str
    sentence: str
    received: datetime


class Filters(BaseModel):
    """What a list of jobs is narrowed to; empty values narrow nothing."""

    state: str = ""
    verdict: str = ""
    pipeline: str = ""
    repository: str = ""
    pull_request: str = ""
    commit: str = ""


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


def values(session: Session) -> dict[str, list[str]]:
    """What the filters of a list can be set to."""
    return {
        "state": [state.value for state in State],
        "verdict": [verdict.value for verdict in Verdict],
        "pipeline": list(session.scalars(select(Job.pipeline).distinct().order_by(Job.pipeline))),
        "repository": list(session.scalars(select(Job.repository).distinct().order_by(Job.repository))),
    }


def goldens(settings: Settings) -> list[GoldenView]:
    """All goldens of the base revision, with their chain."""
    store = GoldenStore(settings.root / "golden")
    return [_golden(store, *key) for key in store.keys()]  # noqa: SIM118 - no mapping


def waivers(settings: Settings, today: date | None = None) -> list[WaiverView]:
    """All waivers of the base revision, the next to expire first. A pipeline that is not valid has none."""
    today = today or datetime.now(UTC).date()
    found = []
    for file in find_pipelines(settings.root):
        try:
            pipeline = load_pipeline(file, settings.root)
        except ValidatorError:
            continue
        found += [
            WaiverView(
                pipeline=pipeline.name, gate=waiver.gate, leaf=waiver.name, reason=waiver.reason, link=waiver.link,
                expires=waiver.expires, days_left=(waiver.expires - today).days,
            )
            for waiver in pipeline.policy.waivers
        ]  # fmt: skip
    return sorted(found, key=lambda waiver: (waiver.expires, waiver.pipeline, waiver.leaf))


def pipelines_of(settings: Settings) -> Sequence[str]:
    """Names of the pipelines that an event calls for."""
    return settings.pipelines or tuple(file.stem for file in find_pipelines(settings.root))


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


def _golden(store: GoldenStore, pipeline: str, hardware_class: str) -> GoldenView:
    try:
        record = store.record(pipeline, hardware_class)
    except ValidatorError as error:
        return GoldenView(
            pipeline=pipeline, hardware_class=hardware_class, digest="", recorded=date(1970, 1, 1), approver="",
            requester="", reason="", change=None, launches=0, resume="", supersedes=None, chain=[], problem=str(error),
        )  # fmt: skip
    assert record is not None
    try:
        versions, problem = tuple(log(store, pipeline, hardware_class)), ""
    except NoHistoryError as error:
        versions, problem = (), str(error)
    chain = [
        GoldenVersion(
            commit=version.commit.identity, date=version.commit.date, author=version.commit.author,
            digest="" if version.record is None else version.record.digest,
            approver="" if version.record is None else version.record.approver,
            reason="" if version.record is None else version.record.reason,
        )
        for version in versions
    ]  # fmt: skip
    return GoldenView(
        pipeline=pipeline, hardware_class=hardware_class, digest=record.digest, recorded=record.recorded,
        approver=record.approver, requester=record.requester, reason=record.reason, change=record.change,
        launches=record.launches, resume=record.resume, supersedes=record.supersedes, chain=chain, problem=problem,
    )  # fmt: skip


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds or time.time(), UTC).replace(microsecond=0)
