"""Works out which pipelines a change calls for, by the plan that ``validator plan`` makes, and makes its jobs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from sqlalchemy import select
from sqlalchemy.orm.exc import StaleDataError

from validator.errors import ValidatorError
from validator.github.plan import make_plan
from validator.service.clone import Clone, CloneError
from validator.service.database import Database
from validator.service.jobs.changes import ask_of
from validator.service.jobs.store import check
from validator.service.settings import Settings
from validator.service.tables import Change, ChangeState

log = logging.getLogger(__name__)

#: How often a commit is asked for that cannot be had now.
_MOST_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Planned:
    """Names of pipelines, a sentence about them, and findings that a person has to decide."""

    pipelines: tuple[str, ...]
    sentence: str
    findings: tuple[str, ...] = ()


@final
class Planner:
    """Plans changes. Where that cannot be done every pipeline is called for: more is checked then, never less."""

    def __init__(
        self, database: Database, settings: Settings, clone: Clone, pipelines: Callable[[], Sequence[str]],
        clock: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._database = database
        self._settings = settings
        self._clone = clone
        self._pipelines = pipelines
        self._clock = clock

    def run_once(self) -> int:
        """Plan what is due; gives how many changes were looked at. Raises ``StorageError``."""
        with self._database.read() as session:
            due = session.scalars(
                select(Change)
                .where(Change.state == ChangeState.ASKED, Change.after <= self._clock())
                .order_by(Change.id)
            ).all()
        for row in due:
            try:
                self._plan(row)
            except StaleDataError:
                continue  # a webhook was faster: the next round sees what it did
        return len(due)

    def _plan(self, row: Change) -> None:
        try:
            planned = self._planned(row)
        except CloneError as error:
            if error.may_come and row.attempts + 1 < _MOST_ATTEMPTS:
                self._later(row, str(error))
                return
            planned = self._everything(str(error))
        except ValidatorError as error:
            planned = self._everything(str(error))
        with self._database.write() as session:
            found = session.get_one(Change, row.id)
            if found.version != row.version:
                return  # superseded, or asked for anew, meanwhile
            check(session, ask_of(found), planned.pipelines, self._clock())
            found.state, found.sentence = ChangeState.PLANNED, planned.sentence
            found.pipelines, found.findings = " ".join(planned.pipelines), "\n".join(planned.findings)
            found.wanted += 1
        log.info("%s for %s: %s", row.commit[:12], row.line, planned.sentence)

    def _planned(self, row: Change) -> Planned:
        """Raises ``CloneError``, and ``ValidatorError`` where the plan cannot be made."""
        base = row.base or row.commit
        root = self._clone.with_commits(base, row.commit)
        plan = make_plan(root, base, row.commit, row.image or None)
        wanted = self._settings.pipelines
        names = tuple(each.pipeline for each in plan.called if not wanted or each.pipeline in wanted)
        reasons = "; ".join(f"{each.pipeline}: {each.reason}" for each in plan.called if each.pipeline in names)
        return Planned(names, f"{plan.sentence} {reasons}".strip(), plan.findings)

    def _everything(self, why: str) -> Planned:
        return Planned(tuple(self._pipelines()), f"It could not be planned, so every pipeline is called for: {why}")

    def _later(self, row: Change, why: str) -> None:
        with self._database.write() as session:
            found = session.get_one(Change, row.id)
            if found.version != row.version:
                return
            found.attempts += 1
            found.after = self._clock() + 5.0 * 2.0**row.attempts
            found.sentence = f"To be planned again: {why}"
        log.warning("%s for %s: %s", row.commit[:12], row.line, why)
