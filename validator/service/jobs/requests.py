"""What people ask for, and GitHub has to be asked about first: may they, and what exactly is meant?"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import final

from sqlalchemy import select

from validator.service.database import Database
from validator.service.github import GitHub, GitHubAwayError, GitHubError, Place
from validator.service.jobs.moves import wish_publication
from validator.service.jobs.owners import PLACES, owners
from validator.service.jobs.store import take_in
from validator.service.settings import Settings
from validator.service.tables import Job, Request
from validator.service.webhooks.asks import CheckCommit, Source

log = logging.getLogger(__name__)

_MOST_ATTEMPTS = 10

#: A dispatched workflow shows in GitHub's list after some seconds: one that was perhaps dispatched is waited for.
_DELAY = 30.0


class RefusedError(Exception):
    """The person may not, or it makes no sense; a sentence for the page and the check run."""


@final
class Requests:
    """Carries out what was asked for, once the person is known to be allowed to."""

    def __init__(
        self, database: Database, settings: Settings, github: GitHub, pipelines: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._database = database
        self._settings = settings
        self._github = github
        self._pipelines = pipelines
        self._clock = clock

    def run_once(self) -> int:
        """Carry out everything that is due. Raises ``StorageError``."""
        with self._database.read() as session:
            due = session.scalars(
                select(Request)
                .where(Request.state.in_(("asked", "starting")), Request.after <= self._clock())
                .order_by(Request.id)
            ).all()
        for request in due:
            self._carry_out(request)
        return len(due)

    def _carry_out(self, request: Request) -> None:
        try:
            (self._rebaseline if request.kind == "rebaseline" else self._check)(request)
        except RefusedError as refusal:
            self._settle(request, "refused", str(refusal))
        except GitHubAwayError as error:
            if request.attempts + 1 >= _MOST_ATTEMPTS:
                self._settle(request, "failed", f"Asked for by {request.person}; {error}")
                return
            pause = max(error.seconds, min(600.0, 5.0 * 2**request.attempts))
            self._settle(request, None, f"Asked for by {request.person}; {error}", pause)
        except GitHubError as error:
            self._settle(request, "failed", f"Asked for by {request.person}; {error}")

    def _rebaseline(self, request: Request) -> None:
        place = Place(request.repository, request.installation)
        with self._database.read() as session:
            job = session.get_one(Job, request.job_id)
        if job.pull_request is None:
            raise RefusedError("A golden travels with a pull request, and this check run belongs to none.")
        branch = self._github.default_branch(place)
        ref = self._settings.workflow_ref or branch
        workflow = self._settings.rebaseline_workflow
        key = f"rebaseline-{request.key[:20]}"
        is_started = False
        if request.state == "starting":  # killed around the dispatch: it may have been made
            is_started = self._github.find_run(place, workflow, key, request.created - 60) is not None
        else:
            self._insist_on_owner(place, request.person, f"golden/{job.pipeline}/golden.json", branch)
            pull = self._github.pull(place, job.pull_request)
            if not pull.is_open:
                raise RefusedError(f"Pull request {pull.number} is closed.")
            if pull.commit != job.commit:
                raise RefusedError(
                    f"Pull request {pull.number} has moved on to {pull.commit[:12]}; look at that check."
                )
            self._settle(request, "starting", "", _DELAY)
        if not is_started:
            reason = f"Asked for by @{request.person} on the check run of {job.commit[:12]}"
            inputs = {
                "pull-request": str(job.pull_request), "pipelines": job.pipeline, "reason": reason, "key": key,
            }  # fmt: skip
            self._github.dispatch(place, workflow, ref, inputs)
        self._settle(request, "done", f"Re-baselining was started by {request.person}.")

    def _insist_on_owner(self, place: Place, person: str, path: str, branch: str) -> None:
        """Only owners of golden/ by the default branch's CODEOWNERS, as for the review of the change itself."""
        text = next((text for name in PLACES if (text := self._github.file(place, name, branch)) is not None), None)
        if text is None:
            raise RefusedError(
                f"{person} may not re-baseline: the repository has no CODEOWNERS that names golden/'s owners."
            )
        for owner in owners(text, path):
            name = owner.removeprefix("@")
            organization, slash, team = name.partition("/")
            if not slash and owner.startswith("@") and name.lower() == person.lower():
                return
            if slash and owner.startswith("@") and self._github.is_member(place, organization, team, person):
                return
        raise RefusedError(f"{person} may not re-baseline: no owner of golden/ by CODEOWNERS.")

    def _check(self, request: Request) -> None:
        place = Place(request.repository, request.installation)
        if self._github.permission(place, request.person) not in ("admin", "maintain", "write"):
            raise RefusedError(f"{request.person} may not ask for a check: that takes write permission.")
        assert request.pull_request is not None
        pull = self._github.pull(place, request.pull_request)
        if pull.is_fork and not request.commit:
            raise RefusedError("The head is a fork's: name the commit that was looked at, /validate COMMIT.")
        if request.commit and not pull.commit.startswith(request.commit):
            raise RefusedError(f"Pull request {pull.number} is at {pull.commit[:12]}, not at {request.commit[:12]}.")
        source = Source(request.repository, request.installation, request.person)
        line = f"pull request {pull.number}"
        ask = CheckCommit(source, pull.commit, line, pull.number, "rerun", f"request {request.id}", base=pull.base)
        pipelines = self._pipelines()
        with self._database.write() as session:
            taken = take_in(session, ask, pipelines, self._clock())
            row = session.get_one(Request, request.id)
            row.state, row.sentence = "done", taken.sentence

    def _settle(self, request: Request, state: str | None, sentence: str, pause: float = 0.0) -> None:
        with self._database.write() as session:
            row = session.get_one(Request, request.id)
            row.state, row.sentence = state or row.state, sentence
            if pause:
                row.attempts += 1
                row.after = self._clock() + pause
            if row.job_id is not None and sentence:
                wish_publication(session, session.get_one(Job, row.job_id))
        log.info("request %d (%s by %s): %s. %s", row.id, row.kind, row.person, row.state, sentence)
