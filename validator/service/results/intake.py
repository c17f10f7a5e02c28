"""Takes a result in: verified by digest, unpacked, judged anew, put in its place, and only then remembered."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, final

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session
from sqlalchemy.orm.exc import StaleDataError

from validator.errors import UsageError
from validator.report.json import render_json
from validator.report.model import Report, Verdict
from validator.report.reading import read_report
from validator.report.result import GOLDEN, RESULT, Index, SegmentPlace
from validator.report.text import printable
from validator.service.clone import Clone
from validator.service.database import Database, retrying
from validator.service.jobs.moves import move, wish_publication
from validator.service.jobs.store import job_by_attempt, take_in
from validator.service.results.judging import Judged, judge
from validator.service.results.pack import REPORT, ContentError, TooLargeError, unpack
from validator.service.settings import Settings
from validator.service.tables import OPEN, Job, Result, State
from validator.service.tokens import Leave
from validator.service.webhooks.asks import CheckCommit, Source, key_of

#: A packed result may unpack to so many times its limit.
_EXPANSION = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """HTTP status and a sentence."""

    status: int
    sentence: str


@final
class Intake:
    """The one door for results, below ``results/`` of the data folder."""

    def __init__(
        self, database: Database, settings: Settings, clone: Clone, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._settings = settings
        self._clone = clone
        self._clock = clock
        self.folder = settings.folder / "results"
        self._part = settings.folder / "parts"

    def refuse(self, attempt: str, leave: Leave | None) -> Answer | None:
        """Why a result of this attempt is not taken from this token, before its body is read; ``None``: it is."""
        if leave is None:
            return Answer(401, "A token is needed: Authorization: Bearer TOKEN, neither expired nor revoked.")
        with self._database.read() as session:
            found = job_by_attempt(session, attempt)
        if found is None or not leave.allows(found[0]):
            return Answer(403, "The token allows no result of this attempt.")  # the same for one that is not there
        if found[0].state in (State.CANCELLED, State.CANCELLING):
            return Answer(409, f"The result is not waited for any more: {found[0].sentence}")
        return None

    async def receive(self, body: AsyncIterator[bytes], limit: int) -> tuple[Path, str]:
        """Write a body to a file of its own; gives it and its SHA-256. Raises ``TooLargeError``, ``OSError``."""
        self._part.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._part, delete=False) as file:
            path, digest, size = Path(file.name), hashlib.sha256(), 0
            try:
                async for block in body:
                    size += len(block)
                    if size > limit:
                        raise TooLargeError(f"The result is larger than {limit} bytes.")
                    digest.update(block)
                    file.write(block)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
        return path, digest.hexdigest()

    def take(self, attempt: str, packed: Path, digest: str, leave: Leave) -> Answer:
        """Take a received result in; repeating it changes nothing. Raises ``StorageError``, ``OSError``."""
        with self._database.read() as session:
            found = job_by_attempt(session, attempt)
            assert found is not None  # refuse() has seen it, and no job is ever removed
            job, number = found
            known = session.scalars(select(Result).where(Result.job_id == job.id, Result.attempt == number)).first()
        if known is not None:
            return _known(known, digest)
        unpacked = Path(tempfile.mkdtemp(dir=self._part))
        try:
            with packed.open("rb") as stream:
                unpack(stream, unpacked, self._settings.result_bytes * _EXPANSION)
            with tempfile.TemporaryDirectory(dir=self._part) as scratch:
                today = datetime.now(UTC).date()
                judged = judge(
                    unpacked, job.pipeline, self._settings.root, job.commit, Path(scratch), today, self._clone
                )
                _write(unpacked, judged)
            place = self.place(job.id, number)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(place, ignore_errors=True)  # left by a crash before it was remembered
            unpacked.chmod(0o755)
            unpacked.rename(place)
        except TooLargeError as error:
            return Answer(413, str(error))
        except ContentError as error:
            return Answer(422, str(error))
        finally:
            shutil.rmtree(unpacked, ignore_errors=True)
        for last in (False, False, True):
            try:
                with self._database.write() as session:
                    return self._remember(session, job.id, number, digest, judged, leave)
            except (IntegrityError, StaleDataError):
                if last:
                    raise
        raise AssertionError

    def attempt_for(self, repository: str, commit: str, pipeline: str, digest: str) -> str:
        """The attempt that a result belongs to that nobody was handed a key for: the open job's, or a new one's."""
        now = self._clock()
        key = key_of(repository, commit, pipeline, "pushed", digest)
        for last in (False, False, True):
            try:
                with self._database.write() as session:
                    wanted = (Job.repository == repository, Job.commit == commit, Job.pipeline == pipeline)
                    job = session.scalars(select(Job).where(Job.key == key)).first()
                    job = job or session.scalars(select(Job).where(*wanted, Job.state.in_(OPEN))).first()
                    if job is None:
                        wish = CheckCommit(
                            Source(repository, None, ""), commit, f"commit {commit}", None, "pushed", digest
                        )
                        take_in(session, wish, [pipeline], now)
                        job = session.scalars(select(Job).where(Job.key == key)).one()
                        job.state, job.sentence = State.RUNNING, "A result is being pushed."
                        job.handed, job.after = now, now + self._settings.job_seconds
                    job.attempt = max(job.attempt, 1)
                    session.flush()
                    return job.attempt_key
            except (IntegrityError, StaleDataError):
                if last:
                    raise
        raise AssertionError

    def progress(self, attempt: str, line: str) -> None:
        """Show how the current attempt stands."""

        def change() -> None:
            with self._database.write() as session:
                found = job_by_attempt(session, attempt)
                if found is None or found[1] != found[0].attempt or State(found[0].state).is_final:
                    return
                found[0].progress, found[0].changed = printable(line), self._clock()
                wish_publication(session, found[0])

        retrying(change)

    def place(self, job: int, attempt: int) -> Path:
        """Where the result of an attempt lies."""
        return self.folder / f"{job}-{attempt}"

    def document(self, job: int, attempt: int) -> Report | None:
        """The report of a result, ``None`` where its files are gone."""
        try:
            return read_report(self.place(job, attempt) / REPORT)
        except UsageError:
            return None

    def sweep(self) -> None:
        """Remove what a crash left half-received."""
        shutil.rmtree(self._part, ignore_errors=True)

    def _remember(
        self, session: Session, job_id: int, attempt: int, digest: str, judged: Judged, leave: Leave
    ) -> Answer:
        job = session.get_one(Job, job_id)
        known = session.scalars(select(Result).where(Result.job_id == job_id, Result.attempt == attempt)).first()
        if known is not None:
            return _known(known, digest)
        report, now = judged.report, self._clock()
        ratio, low, high = overhead_of(report)
        session.add(
            Result(
                job_id=job_id, attempt=attempt, digest=digest, received=now, pushed_by=leave.name,
                verdict=report.verdict.value, claimed=judged.claimed.value, sentence=report.sentence,
                gating=judged.gating, pipeline=job.pipeline, hardware_class=report.hardware_class[:200],
                started=report.started[:40], seconds=report.seconds, overhead=ratio, overhead_low=low,
                overhead_high=high,
            )
        )  # fmt: skip
        if job.state == State.ENDED:
            return Answer(409, "Another attempt's result counts already; this one is kept beside it.")
        if job.state in (State.CANCELLED, State.CANCELLING):
            return Answer(409, f"The result is not waited for any more: {job.sentence}")
        if report.verdict is Verdict.ERROR and judged.gating and job.failures + 1 < self._settings.attempts:
            # The machinery failed inside the check: another attempt is made, and no verdict stands meanwhile.
            job.failures += 1
            job.after = now + self._settings.retry_seconds * 2 ** (job.failures - 1)
            move(session, job, State.WAITING, f"To be tried again: {report.sentence}", now)
            return Answer(201, "The result is kept; the machinery failed, so the check is tried again.")
        job.verdict = report.verdict.value
        move(session, job, State.ENDED, report.sentence, now)
        return Answer(201, f"The result counts: {report.verdict.value}.")


def overhead_of(report: Report) -> tuple[float | None, float | None, float | None]:
    """Overhead and its bounds as fractions of step time, where the report has a whole measurement."""
    record: Any = report.overhead
    if record is None or record.get("mode") != "full":
        return None, None, None
    found = record["overhead"]
    return float(found["estimate"]), float(found["interval"]["lower"]), float(found["interval"]["upper"])


def _known(known: Result, digest: str) -> Answer:
    if known.digest == digest:
        return Answer(200, f"This result was received before: {known.verdict}.")
    return Answer(409, "Another result of this attempt was received before.")


def _write(folder: Path, judged: Judged) -> None:
    """Put the report that counts beside the claimed one, and an index of what is here."""
    (folder / REPORT).rename(folder / "claimed.json")
    (folder / REPORT).write_text(render_json(judged.report), encoding="utf-8")
    if judged.golden is not None:
        target = folder / GOLDEN
        target.mkdir(parents=True)
        for name in judged.golden.trajectory.files:
            shutil.copyfile(judged.golden.trajectory.directory / name, target / name)

    def there(place: str) -> bool:
        return (folder / place / "trajectory.json").is_file()

    launches = sorted(path.name for path in (folder / "launches").glob("*"))
    restores = {
        name: _restore(folder / "launches" / name / "trajectory") for name in launches if name.startswith("resume-")
    }
    index = Index(
        golden=GOLDEN if judged.golden is not None else None,
        reference="launches/reference/trajectory" if there("launches/reference/trajectory") else None,
        repeats=tuple(f"launches/{name}/trajectory" for name in launches if name.startswith("repeat")),
        segments=tuple(SegmentPlace(name, step, f"launches/{name}/trajectory") for name, step in restores.items()),
    )
    (folder / RESULT).write_text(index.to_text(), encoding="utf-8")


def _restore(trajectory: Path) -> int:
    """The step that a segment restored: that of its first moment, where it is a restore's."""
    try:
        moments = json.loads((trajectory / "trajectory.json").read_bytes())["moments"]
        first = next(iter(moments))
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return 0
    phase, _, step = str(first).partition(":")
    return int(step) if phase != "step" and step.isdigit() else 0
