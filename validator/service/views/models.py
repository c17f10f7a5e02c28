"""What is shown, as plain values; the JSON API's document is made of these."""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal

from pydantic import BaseModel, Field

StateName = Literal["waiting", "handing", "running", "cancelling", "ended", "failed", "cancelled"]
ChangeName = Literal["asked", "planned", "let go"]


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


class ChangeView(BaseModel):
    """A commit that was to be checked, and what it calls for."""

    repository: str
    commit: str
    base: str = Field(description="empty where a new image calls, and not what changed")
    line: str
    action: str
    state: ChangeName
    sentence: str
    pipelines: list[str] = Field(description="those that are called for; empty until it is planned")
    findings: list[str] = Field(description="what a person has to decide")
    check_run: int | None
    created: datetime


class Filters(BaseModel):
    """What a list of jobs is narrowed to; empty values narrow nothing."""

    state: str = ""
    verdict: str = ""
    pipeline: str = ""
    repository: str = ""
    pull_request: str = ""
    commit: str = ""
