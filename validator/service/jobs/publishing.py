"""Brings check runs to what the jobs are: queued, in progress with how far it is, completed with buttons."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, final

from sqlalchemy import select

from validator.github.conclusion import ACTION_REQUIRED, CONCLUSIONS, FAILURE
from validator.report.markdown import render_markdown
from validator.report.markup import code, prose
from validator.report.model import Report, Verdict
from validator.service.database import Database
from validator.service.github import GitHub, GitHubAwayError, GitHubError, Place
from validator.service.settings import Settings
from validator.service.tables import Job, Publication, Request, Result, State
from validator.service.webhooks.events import REBASELINE, RUN_AGAIN

log = logging.getLogger(__name__)

#: Between two updates of a job that is still running, in seconds: GitHub counts them.
_BETWEEN = 10.0

#: The longest pause after GitHub was away, in seconds.
_LONGEST = 600.0

#: GitHub takes up to 65,535 characters of text.
_MOST_TEXT = 60_000

#: A press of the button makes sense where there are bits to accept.
_ACCEPTABLE = frozenset({Verdict.CHANGED.value, Verdict.NO_BASELINE.value})


@final
class Publisher:
    """Makes every job's check run show the job. ``report`` gives the report of a job's result."""

    def __init__(
        self, database: Database, settings: Settings, github: GitHub, report: Callable[[int, int], Report | None],
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._database = database
        self._settings = settings
        self._github = github
        self._report = report
        self._clock = clock

    def run_once(self) -> int:
        """Publish what has changed; gives how many check runs were brought up to date. Raises ``StorageError``."""
        with self._database.read() as session:
            due = session.scalars(
                select(Publication.job_id).where(
                    Publication.done < Publication.wanted, Publication.after <= self._clock()
                )
            ).all()
        return sum(map(self._publish, due))

    def _publish(self, job_id: int) -> bool:
        with self._database.read() as session:
            publication = session.get_one(Publication, job_id)
            job = session.get_one(Job, job_id)
            results = session.scalars(select(Result).where(Result.job_id == job_id).order_by(Result.attempt)).all()
            requests = session.scalars(select(Request).where(Request.job_id == job_id).order_by(Request.id)).all()
        place = Place(job.repository, job.installation)
        counts = (
            next((each for each in reversed(results) if each.verdict == job.verdict), None) if job.verdict else None
        )
        content = self._content(job, counts, [each.sentence for each in requests if each.sentence])
        try:
            check_run = publication.check_run
            if check_run is None and publication.creating:  # killed between creating it and remembering that
                check_run = self._github.find_check_run(place, job.commit, job.key)
            if check_run is None:
                self._set(job_id, creating=True)
                check_run = self._github.create_check_run(
                    place, {**content, "head_sha": job.commit, "external_id": job.key}
                )
            else:
                self._github.update_check_run(place, check_run, content)
        except GitHubAwayError as error:
            pause = max(error.seconds, min(_LONGEST, 5.0 * 2 ** min(publication.failures, 8)))
            self._problem(publication, str(error), pause)
            return False
        except GitHubError as error:
            self._problem(publication, str(error), _LONGEST)
            return False
        pause = 0.0 if State(job.state).is_final else _BETWEEN
        # Not up to what is wanted now, but up to what was wanted when the job was read.
        self._set(
            job_id, check_run=check_run, creating=False, done=publication.wanted, failures=0, problem="",
            after=self._clock() + pause,
        )  # fmt: skip
        return True

    def _problem(self, publication: Publication, sentence: str, pause: float) -> None:
        log.warning("check run of job %d: %s", publication.job_id, sentence)
        self._set(publication.job_id, failures=publication.failures + 1, problem=sentence, after=self._clock() + pause)

    def _set(self, job_id: int, **values: Any) -> None:
        with self._database.write() as session:
            row = session.get_one(Publication, job_id)
            for name, value in values.items():
                setattr(row, name, value)

    def _content(self, job: Job, result: Result | None, notes: list[str]) -> dict[str, Any]:
        content: dict[str, Any] = {
            "name": f"validator / {job.pipeline}",
            "details_url": f"{self._settings.public_url}/jobs/{job.id}",
        }
        state = State(job.state)
        if not state.is_final:
            runs = state in (State.RUNNING, State.CANCELLING)
            content["status"] = "in_progress" if runs else "queued"
            if runs:
                content["started_at"] = _iso(job.handed)
            summary = [prose(job.sentence), prose(job.progress), *map(prose, notes)]
            content["output"] = _output("Running" if runs else "Waiting", summary, "")
            return content
        content["status"] = "completed"
        content["completed_at"] = _iso(job.changed)
        content["actions"] = [_button("Run again", "Check the same commit once more", RUN_AGAIN)]
        if state is not State.ENDED or result is None:
            content["conclusion"] = "cancelled" if state is State.CANCELLED else "failure"
            title = "Cancelled" if state is State.CANCELLED else "The machinery failed"
            content["output"] = _output(title, [prose(job.sentence), *map(prose, notes)], "")
            return content
        verdict = Verdict(result.verdict)
        content["conclusion"] = conclusion_of(verdict, gating=result.gating)
        if verdict.value in _ACCEPTABLE and job.pull_request is not None and result.gating:
            content["actions"].append(_button("Re-baseline", "Accept these bits; owners only", REBASELINE))
        summary = [f"**{prose(result.sentence)}**", *map(prose, notes)]
        if not result.gating:
            summary.append("This run was changed on purpose (stamped): it decides nothing.")
        if result.claimed != result.verdict:
            summary.append(f"The runner reported {code(result.claimed)}; its trajectories say otherwise.")
        if self._settings.engine != "actions" and not self._settings.worker_prepare:
            summary.append("Checked was the worker's own environment: nothing of the commit was built or installed.")
        report = self._report(job.id, result.attempt)
        content["output"] = _output(
            verdict.value.replace("_", " "), summary, "" if report is None else render_markdown(report)
        )
        return content


def conclusion_of(verdict: Verdict, *, gating: bool) -> str:
    """What GitHub is to make of a verdict. A run that was changed on purpose decides nothing."""
    return CONCLUSIONS.get(verdict, FAILURE) if gating else ACTION_REQUIRED


def _output(title: str, summary: list[str], text: str) -> dict[str, str]:
    output = {"title": title[:255], "summary": "\n\n".join(line for line in summary if line) or "Nothing to say yet."}
    if text:
        output["text"] = text if len(text) <= _MOST_TEXT else f"{_cut(text)}\n\nThe whole report is on the page."
    return output


def _cut(text: str) -> str:
    """As many whole blocks as GitHub takes, so that no table or code block is torn."""
    blocks, length = [], 0
    for block in text.split("\n\n"):
        length += len(block) + 2
        if length > _MOST_TEXT - 100:
            break
        blocks.append(block)
    cut = "\n\n".join(blocks)
    opened = cut.count("<details>") - cut.count("</details>")
    return cut + "\n\n</details>" * opened


def _button(label: str, description: str, identifier: str) -> dict[str, str]:
    return {"label": label, "description": description, "identifier": identifier}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
