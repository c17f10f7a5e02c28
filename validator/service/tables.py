"""What the service remembers. Times are seconds since 1970, UTC; a migration makes the tables."""

from __future__ import annotations

from enum import StrEnum

from sqlalchemy import BigInteger, Boolean, Double, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

#: SQLite counts rows only in a column of its own INTEGER type.
Identity = BigInteger().with_variant(Integer, "sqlite")


class State(StrEnum):
    """Where a job is in its life."""

    WAITING = "waiting"  # stored; to be handed over when its time comes
    HANDING = "handing"  # about to be handed over: the engine may or may not have it
    RUNNING = "running"  # the engine has it
    CANCELLING = "cancelling"  # superseded or no longer wanted; the engine may still have it
    ENDED = "ended"  # a result counts
    FAILED = "failed"  # the machinery failed too often
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        return self in FINAL


FINAL = frozenset({State.ENDED, State.FAILED, State.CANCELLED})
OPEN = tuple(state for state in State if state not in FINAL)


class Base(DeclarativeBase):
    """All tables."""


class Delivery(Base):
    """One webhook that was authenticated, and what became of it."""

    __tablename__ = "deliveries"

    guid: Mapped[str] = mapped_column(String(64), primary_key=True)
    event: Mapped[str] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(64), default="")
    body: Mapped[str] = mapped_column(String(64), unique=True)  # SHA-256 of the raw body
    outcome: Mapped[str] = mapped_column(String(16))
    sentence: Mapped[str] = mapped_column(Text)
    received: Mapped[float] = mapped_column(Double)


class ChangeState(StrEnum):
    """How far a change has come."""

    ASKED = "asked"  # which pipelines it calls for is to be worked out
    PLANNED = "planned"  # its jobs are there
    LET_GO = "let go"  # superseded, or nobody waits for it any more


class Change(Base):
    """A commit that is to be checked against ``base`` with the pipelines that it calls for.

    ``key``, ``line``, ``asked``, ``attempts``, ``after`` and ``version`` are what they are for a job. ``pipelines`` are
    names separated by blanks, ``findings`` sentences, one a line. The aggregate check run shows all its jobs:
    ``wanted`` counts what there was to show, ``done`` is how far it is shown, ``about`` the newest job when it was
    made, ``shown`` a digest of what it shows.
    """

    __tablename__ = "changes"

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    repository: Mapped[str] = mapped_column(String(200))
    commit: Mapped[str] = mapped_column(String(64))
    base: Mapped[str] = mapped_column(String(64), default="")
    line: Mapped[str] = mapped_column(String(300))
    pull_request: Mapped[int | None] = mapped_column(Integer)
    installation: Mapped[int | None] = mapped_column(BigInteger)
    requester: Mapped[str] = mapped_column(String(100), default="")
    action: Mapped[str] = mapped_column(String(16))
    subject: Mapped[str] = mapped_column(String(300), default="")
    image: Mapped[str] = mapped_column(String(300), default="")
    asked: Mapped[float] = mapped_column(Double)
    created: Mapped[float] = mapped_column(Double)
    state: Mapped[ChangeState] = mapped_column(String(16), default=ChangeState.ASKED)
    sentence: Mapped[str] = mapped_column(Text, default="")
    pipelines: Mapped[str] = mapped_column(Text, default="")
    findings: Mapped[str] = mapped_column(Text, default="")
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    after: Mapped[float] = mapped_column(Double, default=0.0)
    wanted: Mapped[int] = mapped_column(Integer, default=0)
    done: Mapped[int] = mapped_column(Integer, default=0)
    check_run: Mapped[int | None] = mapped_column(BigInteger)
    creating: Mapped[bool] = mapped_column(Boolean, default=False)
    about: Mapped[int] = mapped_column(BigInteger, default=0)
    shown: Mapped[str] = mapped_column(String(64), default="")
    failures: Mapped[int] = mapped_column(Integer, default=0)
    problem: Mapped[str] = mapped_column(Text, default="")
    publish_after: Mapped[float] = mapped_column(Double, default=0.0)
    version: Mapped[int] = mapped_column(Integer, nullable=False)

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's way
    __table_args__ = (
        Index("changes_by_commit", "repository", "commit"),
        Index("changes_by_line", "repository", "line"),
        Index("changes_by_state", "state", "after"),
    )


class Job(Base):
    """One check that was asked for. ``key`` is a digest of what was asked for, so that nothing is done twice.

    ``line`` is what commits follow one another on (a pull request, a branch, a merge group): a newer commit on it
    supersedes; ``asked`` is when, by the event's own time. ``attempt`` counts hand-overs, ``failures`` those
    that the machinery did not bring to an end since the job was last asked for; ``external`` is the engine's own name
    for the current one. ``after`` is the earliest time of the next step. ``version`` lets only one writer make a step.
    """

    __tablename__ = "jobs"

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    repository: Mapped[str] = mapped_column(String(200))
    commit: Mapped[str] = mapped_column(String(64))
    pipeline: Mapped[str] = mapped_column(String(200))
    action: Mapped[str] = mapped_column(String(16))
    line: Mapped[str] = mapped_column(String(300))
    pull_request: Mapped[int | None] = mapped_column(Integer)
    image: Mapped[str] = mapped_column(String(300), default="")
    installation: Mapped[int | None] = mapped_column(BigInteger)
    requester: Mapped[str] = mapped_column(String(100), default="")
    state: Mapped[State] = mapped_column(String(16), default=State.WAITING)
    sentence: Mapped[str] = mapped_column(Text, default="")
    attempt: Mapped[int] = mapped_column(Integer, default=0)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    external: Mapped[str] = mapped_column(String(200), default="")
    asked: Mapped[float] = mapped_column(Double)
    handed: Mapped[float] = mapped_column(Double, default=0.0)
    after: Mapped[float] = mapped_column(Double, default=0.0)
    progress: Mapped[str] = mapped_column(Text, default="")
    verdict: Mapped[str] = mapped_column(String(32), default="")
    created: Mapped[float] = mapped_column(Double)
    changed: Mapped[float] = mapped_column(Double)
    version: Mapped[int] = mapped_column(Integer, nullable=False)

    __mapper_args__ = {"version_id_col": version}  # noqa: RUF012 - SQLAlchemy's way
    __table_args__ = (
        Index("jobs_by_state", "state", "after"),
        Index("jobs_by_line", "repository", "line", "pipeline"),
        Index("jobs_by_pipeline", "pipeline", "created"),
    )

    @property
    def attempt_key(self) -> str:
        """What the engine knows the current attempt by; the same however often it is handed over."""
        return f"{self.key[:20]}-{self.attempt}"


class Result(Base):
    """The one result of an attempt. ``digest`` is the SHA-256 of what was pushed."""

    __tablename__ = "results"

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id"))
    attempt: Mapped[int] = mapped_column(Integer)
    digest: Mapped[str] = mapped_column(String(64), index=True)
    received: Mapped[float] = mapped_column(Double)
    pushed_by: Mapped[str] = mapped_column(String(100))
    verdict: Mapped[str] = mapped_column(String(32))
    claimed: Mapped[str] = mapped_column(String(32))
    sentence: Mapped[str] = mapped_column(Text)
    gating: Mapped[bool] = mapped_column(Boolean)
    pipeline: Mapped[str] = mapped_column(String(200))
    hardware_class: Mapped[str] = mapped_column(String(200))
    started: Mapped[str] = mapped_column(String(40))
    seconds: Mapped[float] = mapped_column(Double)
    overhead: Mapped[float | None] = mapped_column(Double)
    overhead_low: Mapped[float | None] = mapped_column(Double)
    overhead_high: Mapped[float | None] = mapped_column(Double)

    __table_args__ = (UniqueConstraint("job_id", "attempt"),)


class Publication(Base):
    """A job's check run: what GitHub is to show, and what it is known to show.

    ``wanted`` goes up with every change of the job; the publisher brings ``done`` up to it. ``creating`` is set before
    a check run is created, so that after a crash an existing one is looked for first.
    """

    __tablename__ = "publications"

    job_id: Mapped[int] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    check_run: Mapped[int | None] = mapped_column(BigInteger)
    creating: Mapped[bool] = mapped_column(Boolean, default=False)
    wanted: Mapped[int] = mapped_column(Integer, default=1)
    done: Mapped[int] = mapped_column(Integer, default=0)
    failures: Mapped[int] = mapped_column(Integer, default=0)
    problem: Mapped[str] = mapped_column(Text, default="")
    after: Mapped[float] = mapped_column(Double, default=0.0)


class Request(Base):
    """What a person asked for and GitHub has to be asked about: ``rebaseline`` (of a job) or ``check`` (of a pull
    request's head).
    """

    __tablename__ = "requests"

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    key: Mapped[str] = mapped_column(String(64), unique=True)
    kind: Mapped[str] = mapped_column(String(16))
    repository: Mapped[str] = mapped_column(String(200))
    installation: Mapped[int | None] = mapped_column(BigInteger)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("jobs.id"))
    pull_request: Mapped[int | None] = mapped_column(Integer)
    commit: Mapped[str] = mapped_column(String(64), default="")
    person: Mapped[str] = mapped_column(String(100))
    state: Mapped[str] = mapped_column(String(16), default="asked")  # asked, starting, done, refused, failed
    sentence: Mapped[str] = mapped_column(Text, default="")
    attempts: Mapped[int] = mapped_column(Integer, default=0)
    after: Mapped[float] = mapped_column(Double, default=0.0)
    created: Mapped[float] = mapped_column(Double)


class Token(Base):
    """Leave to push results, for one repository or one job. The token itself is not kept, only its SHA-256."""

    __tablename__ = "tokens"

    id: Mapped[int] = mapped_column(Identity, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    repository: Mapped[str] = mapped_column(String(200))
    job_key: Mapped[str] = mapped_column(String(64), default="")
    created: Mapped[float] = mapped_column(Double)
    expires: Mapped[float] = mapped_column(Double)
    revoked: Mapped[float | None] = mapped_column(Double)
    used: Mapped[float | None] = mapped_column(Double)
