"""Hand-over, following, retries, and a service that is killed between any two steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from sqlalchemy import update

from tests.service import payloads
from tests.service.hub import Hub
from tests.service.payloads import commit
from validator.service.database import Database
from validator.service.engines.model import EngineError, Look, Order, Standing
from validator.service.jobs.life import Life
from validator.service.jobs.store import take_in
from validator.service.settings import Settings
from validator.service.tables import Job, State, Token
from validator.service.webhooks.events import understand


@dataclass
class Engine:
    """An engine that remembers what it was handed, and does as it is told."""

    name: str = "test"
    grace: float = 0.0
    delay: float = 0.0
    tokens: bool = True
    room: bool = True
    handed: list[str] = field(default_factory=list)
    known: dict[str, Look] = field(default_factory=dict)
    cancelled: list[str] = field(default_factory=list)
    away: bool = False
    dies_after: bool = False

    def has_room(self) -> bool:
        return self.room

    def find(self, order: Order, since: float) -> str | None:
        return f"run {order.attempt}" if order.attempt in self.known else None

    def hand_over(self, order: Order) -> str:
        if self.away:
            raise EngineError("The engine is away.")
        self.handed.append(order.attempt)
        self.known[order.attempt] = Look(Standing.RUNNING, "step 1 of 9")
        if self.dies_after:
            raise KeyboardInterrupt  # the service is gone before it could remember
        return f"run {order.attempt}"

    def look(self, order: Order, external: str) -> Look:
        if self.away:
            raise EngineError("The engine is away.")
        return self.known[order.attempt]

    def cancel(self, order: Order, external: str) -> None:
        self.cancelled.append(order.attempt)


@dataclass
class Scene:
    """One job and a clock that is moved by hand."""

    database: Database
    engine: Engine = field(default_factory=Engine)
    now: float = 1_000_000.0

    def __post_init__(self) -> None:
        ask = understand("pull_request", payloads.pull_request(commit("a")), "")
        with self.database.write() as session:
            take_in(session, ask, ["tiny"], self.now)

    @property
    def life(self) -> Life:
        settings = Settings(retry_seconds=10.0, poll_seconds=1.0, job_seconds=1000.0, attempts=3)
        return Life(self.database, settings, self.engine, lambda: self.now)

    def go(self, seconds: float = 2.0) -> Job:
        self.now += seconds
        self.life.run_once()
        return self.job

    @property
    def job(self) -> Job:
        with self.database.read() as session:
            return session.get_one(Job, 1)

    def end(self, look: Look) -> None:
        self.engine.known[self.job.attempt_key] = look


@pytest.fixture
def scene(database: Database) -> Scene:
    return Scene(database)


def test_it_is_handed_over_once_and_followed(scene: Scene) -> None:
    job = scene.go()
    assert (job.state, job.attempt, job.external) == (State.RUNNING, 1, f"run {job.key[:20]}-1")
    job = scene.go()
    assert (job.state, job.progress, scene.engine.handed) == (State.RUNNING, "step 1 of 9", [job.attempt_key])


def test_without_room_it_waits(scene: Scene) -> None:
    scene.engine.room = False
    assert scene.go().state == State.WAITING
    scene.engine.room = True
    assert scene.go().state == State.RUNNING


def test_killed_right_after_the_hand_over_it_is_adopted_and_not_handed_over_again(scene: Scene) -> None:
    scene.engine.dies_after = True
    with pytest.raises(KeyboardInterrupt):
        scene.go()
    assert scene.job.state == State.HANDING
    scene.engine.dies_after = False
    job = scene.go()
    assert (job.state, job.attempt, scene.engine.handed) == (State.RUNNING, 1, [job.attempt_key])


def test_killed_right_before_the_hand_over_it_is_handed_over_under_the_same_key(scene: Scene) -> None:
    scene.engine.dies_after = True
    with pytest.raises(KeyboardInterrupt):
        scene.go()
    scene.engine.dies_after = False
    scene.engine.known.clear()  # as if it had never come there
    job = scene.go()
    assert (job.state, scene.engine.handed) == (State.RUNNING, [job.attempt_key, job.attempt_key])


def test_what_the_engine_shows_late_is_waited_for_before_it_is_handed_over_again(scene: Scene) -> None:
    scene.engine.delay = 30.0
    scene.engine.dies_after = True
    with pytest.raises(KeyboardInterrupt):
        scene.go()
    shown = dict(scene.engine.known)
    scene.engine.known.clear()
    scene.engine.dies_after = False
    assert scene.go().state == State.HANDING
    scene.engine.known = shown
    job = scene.go()
    assert (job.state, len(scene.engine.handed)) == (State.RUNNING, 1)


def test_a_failure_of_the_machinery_is_retried_later_each_time_and_ends(scene: Scene) -> None:
    for attempt, pause in ((1, 10), (2, 20)):
        assert scene.go().attempt == attempt
        scene.end(Look(Standing.LOST, "The runner is gone."))
        job = scene.go()
        assert (job.state, job.sentence) == (State.WAITING, f"To be tried again in {pause} s: The runner is gone.")
        assert scene.go(pause - 1).state == State.WAITING
    assert scene.go(2).attempt == 3
    scene.end(Look(Standing.LOST, "The runner is gone."))
    job = scene.go()
    assert (job.state, job.sentence, job.attempt) == (State.FAILED, "The runner is gone.", 3)
    assert len(set(scene.engine.handed)) == 3


def test_what_would_end_the_same_is_not_tried_again(scene: Scene) -> None:
    scene.go()
    scene.end(Look(Standing.ENDED, "There is no pipeline 'tiny'.", final=True))
    job = scene.go()
    assert (job.state, job.attempt, job.sentence) == (State.FAILED, 1, "There is no pipeline 'tiny'.")


def test_a_result_may_come_some_time_after_the_end(scene: Scene) -> None:
    scene.engine.grace = 100.0
    scene.go()
    scene.end(Look(Standing.ENDED, "success, but no result"))
    assert scene.go().sentence == "Ended; its result is waited for."
    assert scene.go(90).state == State.RUNNING
    assert scene.go(20).state == State.WAITING


def test_an_engine_that_is_away_fails_no_attempt_that_runs(scene: Scene) -> None:
    scene.go()
    scene.engine.away = True
    for _ in range(5):
        assert scene.go(100).state == State.RUNNING
    scene.engine.away = False
    assert scene.go().failures == 0


def test_an_engine_that_takes_nothing_is_a_failure_of_the_machinery(scene: Scene) -> None:
    scene.engine.away = True
    job = scene.go()
    assert (job.state, job.failures, scene.engine.handed) == (State.WAITING, 1, [])


def test_an_attempt_that_takes_too_long_is_cancelled_and_retried(scene: Scene) -> None:
    scene.go()
    job = scene.go(1001)
    assert (job.state, scene.engine.cancelled) == (State.WAITING, [scene.engine.handed[0]])


def test_what_is_superseded_while_it_runs_is_cancelled_and_its_token_revoked(scene: Scene) -> None:
    scene.go()
    ask = understand("pull_request", payloads.pull_request(commit("b"), at="2026-11-29T11:00:00Z"), "")
    with scene.database.write() as session:
        take_in(session, ask, ["tiny"], scene.now)
    assert scene.job.state == State.CANCELLING
    job = scene.go()
    assert (job.state, scene.engine.cancelled) == (State.CANCELLED, [scene.engine.handed[0]])
    with scene.database.read() as session:
        assert [token.revoked is not None for token in session.query(Token).filter_by(job_key=job.key)] == [True]


def test_a_step_that_another_writer_overtook_is_not_made(scene: Scene) -> None:
    seen = scene.job
    with scene.database.write() as session:
        session.execute(update(Job).values(version=Job.version + 1, state=State.CANCELLED))
    with pytest.raises(Exception, match="changed meanwhile"):
        scene.life.step(seen)
    assert (scene.job.state, scene.engine.handed) == (State.CANCELLED, [])


def test_actions_is_dispatched_found_followed_and_cancelled(hub: Hub) -> None:
    number, sha = hub.pull()
    hub.deliver("pull_request", payloads.pull_request(sha, number))
    hub.round("jobs")
    ((workflow, body),) = hub.double.dispatched
    assert (workflow, body["ref"]) == ("check.yml", "main")
    assert (body["inputs"]["commit"], body["inputs"]["pipeline"]) == (sha, "tiny")
    (run,) = hub.double.workflow_runs
    run["status"] = "in_progress"
    hub.round("jobs")
    assert hub.job()["progress"] == f"The workflow runs: {run['html_url']}"
    newer = hub.push()
    hub.deliver("pull_request", payloads.pull_request(newer, number, at="2026-11-30T10:00:00Z"))
    hub.round("jobs")
    assert (run["status"], run["conclusion"]) == ("completed", "cancelled")
    assert [job["state"] for job in hub.jobs()] == ["running", "cancelled"]


def test_a_dispatch_whose_answer_was_lost_is_not_made_twice(hub: Hub) -> None:
    number, sha = hub.pull()
    hub.deliver("pull_request", payloads.pull_request(sha, number))
    hub.double.trouble = lambda method, path, _: "drop after" if path.endswith("/dispatches") else None
    hub.round("jobs")
    assert (hub.job()["state"], len(hub.double.dispatched)) == ("handing", 1)
    hub.double.trouble = lambda *_: None
    hub.due()
    hub.round("jobs")
    assert (hub.job()["state"], hub.job()["attempt"], len(hub.double.dispatched)) == ("running", 1, 1)
