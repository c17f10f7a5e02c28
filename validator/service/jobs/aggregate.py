"""The aggregate check run of each change: in progress while a job goes on, then the worst of their ends; complete at
once where nothing is called for.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from validator.github.conclusion import ACTION_REQUIRED, FAILURE, SUCCESS, worst
from validator.github.publish import AGGREGATE
from validator.report.markup import code, prose, table
from validator.report.model import Verdict
from validator.report.text import counted, shortened
from validator.service.database import Database
from validator.service.github import GitHub, GitHubAwayError, GitHubError, Place
from validator.service.jobs.changes import external_id
from validator.service.jobs.publishing import conclusion_of
from validator.service.settings import Settings
from validator.service.tables import Change, ChangeState, Job, Result, State
from validator.service.webhooks.events import RUN_AGAIN

log = logging.getLogger(__name__)

_LONGEST = 600.0


@dataclass(frozen=True, slots=True)
class Standing:
    """One pipeline that the change calls for: its newest job, and the result that counts."""

    pipeline: str
    job: Job | None
    result: Result | None

    @property
    def is_open(self) -> bool:
        return self.job is not None and not State(self.job.state).is_final

    @property
    def conclusion(self) -> str:
        """A job that is missing, failed or was cancelled is a failure, never nothing."""
        if self.job is None or self.job.state != State.ENDED or self.result is None:
            return FAILURE
        return conclusion_of(Verdict(self.result.verdict), gating=self.result.gating)


@final
class Aggregates:
    """Brings the aggregate check runs up to date."""

    def __init__(
        self, database: Database, settings: Settings, github: GitHub, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._settings = settings
        self._github = github
        self._clock = clock

    def run_once(self) -> int:
        """Publish what has changed; gives how many check runs were told. Raises ``StorageError``."""
        with self._database.read() as session:
            due = session.scalars(
                select(Change.id).where(
                    Change.done < Change.wanted, Change.publish_after <= self._clock(),
                    Change.state != ChangeState.ASKED,
                )
            ).all()  # fmt: skip
        return sum(map(self._publish, due))

    def _publish(self, number: int) -> bool:
        with self._database.read() as session:
            row = session.get_one(Change, number)
            standings = [_standing(session, row, name) for name in row.pipelines.split()]
        if row.state == ChangeState.LET_GO and row.check_run is None and not row.creating:
            self._set(number, done=row.wanted)  # nothing was ever said of it
            return False
        content = self._content(row, standings)
        newest = max((each.job.id for each in standings if each.job is not None), default=0)
        shown = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        if shown == row.shown and row.check_run is not None:
            self._set(number, done=row.wanted)
            return False
        try:
            self._tell(row, content, newest)
        except GitHubAwayError as error:
            self._problem(row, str(error), max(error.seconds, min(_LONGEST, 5.0 * 2 ** min(row.failures, 8))))
            return False
        except GitHubError as error:
            self._problem(row, str(error), _LONGEST)
            return False
        self._set(number, shown=shown, done=row.wanted, failures=0, problem="")
        return True

    def _tell(self, row: Change, content: dict[str, Any], newest: int) -> None:
        """A check run that was complete stays so: jobs that were asked for after it get another."""
        place = Place(row.repository, row.installation)
        is_another = newest != row.about or row.check_run is None
        if not is_another:
            assert row.check_run is not None
            self._github.update_check_run(place, row.check_run, content)
            return
        identity = external_id(row, newest)
        check_run = self._github.find_check_run(place, row.commit, identity) if row.creating else None
        if check_run is None:
            self._set(row.id, creating=True)
            body = {**content, "head_sha": row.commit, "external_id": identity}
            check_run = self._github.create_check_run(place, body)
        else:
            self._github.update_check_run(place, check_run, content)
        self._set(row.id, check_run=check_run, creating=False, about=newest)

    def _content(self, row: Change, standings: Sequence[Standing]) -> dict[str, Any]:
        content: dict[str, Any] = {
            "name": AGGREGATE,
            "details_url": f"{self._settings.public_url}/?commit={row.commit}",
        }
        findings = row.findings.splitlines()
        summary = "\n\n".join(filter(None, [_rows(standings), prose(row.sentence), *map(_finding, findings)]))
        if row.state == ChangeState.LET_GO:
            return content | {
                "status": "completed", "conclusion": "cancelled",
                "output": {"title": shortened(row.sentence, 200), "summary": summary},
            }  # fmt: skip
        if any(each.is_open for each in standings):
            waiting = sum(each.is_open for each in standings)
            title = f"{waiting} of {counted(len(standings), 'pipeline')} not at an end"
            return content | {"status": "in_progress", "output": {"title": title, "summary": summary}}
        conclusion = worst([*(each.conclusion for each in standings), *([ACTION_REQUIRED] if findings else [])])
        again = {"label": "Run again", "description": "Check the same commit once more", "identifier": RUN_AGAIN}
        return content | {
            "status": "completed", "conclusion": conclusion, "actions": [again] if standings else [],
            "output": {"title": _title(standings, findings), "summary": summary},
        }  # fmt: skip

    def _problem(self, row: Change, sentence: str, pause: float) -> None:
        log.warning("aggregate of %s: %s", row.commit[:12], sentence)
        self._set(row.id, failures=row.failures + 1, problem=sentence, publish_after=self._clock() + pause)

    def _set(self, number: int, **values: Any) -> None:
        """Only what belongs to the check run: the change itself may be on its way meanwhile."""
        with self._database.write() as session:
            session.execute(update(Change).where(Change.id == number).values(**values))


def _standing(session: Session, row: Change, pipeline: str) -> Standing:
    newest = select(func.max(Job.id)).where(
        Job.repository == row.repository, Job.commit == row.commit, Job.pipeline == pipeline
    )
    job = session.scalars(select(Job).where(Job.id == newest.scalar_subquery())).first()
    if job is None or not job.verdict:
        return Standing(pipeline, job, None)
    found = select(Result).where(Result.job_id == job.id, Result.verdict == job.verdict)
    return Standing(pipeline, job, session.scalars(found.order_by(Result.attempt.desc())).first())


def _title(standings: Sequence[Standing], findings: Sequence[str]) -> str:
    wrong = [each.pipeline for each in standings if each.conclusion != SUCCESS]
    if wrong:
        return shortened(f"{len(wrong)} of {counted(len(standings), 'pipeline')} not green: {', '.join(wrong)}", 200)
    if findings:
        return "Findings" if standings else "Findings, and nothing to launch"
    return f"{counted(len(standings), 'pipeline')} green" if standings else "Nothing is called for"


def _rows(standings: Sequence[Standing]) -> str:
    rows = []
    for each in standings:
        word = each.job.verdict or State(each.job.state).value if each.job is not None else "missing"
        sentence = each.result.sentence if each.result is not None else each.job.sentence if each.job else ""
        rows.append((code(each.pipeline), code(word), prose(shortened(sentence, 400))))
    return table(("pipeline", "", "what was found"), rows) if rows else ""


def _finding(sentence: str) -> str:
    return f"**Finding:** {prose(shortened(sentence, 400))}"
