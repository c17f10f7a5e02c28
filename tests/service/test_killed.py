"""Killed at every step of a job's life: nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.service import payloads
from tests.service.hub import Hub
from tests.service.running import Running
from validator.service.tables import State

pytestmark = pytest.mark.system


@pytest.fixture
def running(hub: Hub, tmp_path: Path) -> Iterator[Running]:
    """The service as a process, with one worker on this machine and the double of the launch."""
    hub.add_golden()
    variables = {
        "VALIDATOR_DATA": str(tmp_path / "data"), "VALIDATOR_DATABASE": hub.database_url,
        "VALIDATOR_PROJECT": str(hub.project.folder), "VALIDATOR_WEBHOOK_SECRET": payloads.SECRET,
        "VALIDATOR_GITHUB_URL": hub.double.url, "VALIDATOR_GITHUB_APP": str(payloads.APP),
        "VALIDATOR_GITHUB_PRIVATE_KEY": hub.key, "VALIDATOR_ENGINE": "local", "VALIDATOR_RETRY_SECONDS": "0.2",
        "VALIDATOR_POLL_SECONDS": "0.2", "VALIDATOR_DELIVERY_SECONDS": "2",
        "VALIDATOR_WORKER_OPTIONS": f"--python {hub.project.double.python}",
    }  # fmt: skip
    made = Running(tmp_path, variables)
    made.start()
    yield made
    made.stop()
    assert payloads.SECRET not in made.log.read_text()
    assert "PRIVATE KEY" not in made.log.read_text()


class Life:
    """One job from its webhook to its end, and the moment at which the service is killed."""

    def __init__(self, hub: Hub, running: Running, number: int) -> None:
        self.hub, self.running, self.number = hub, running, number
        self.base = hub.repo.git("rev-parse", "HEAD")
        hub.repo.write("constraints.txt", f"# change {number}\n")
        self.pull, self.commit = hub.pull(f"change-{number}")
        self.guid = f"guid-{number:08}"
        self.payload = payloads.pull_request(self.commit, self.pull, base=self.base)

    def deliver(self) -> None:
        assert self.running.deliver("pull_request", self.payload, self.guid) == 202

    def kill_when(self, what: str, look: Callable[[], Any]) -> None:
        self.running.until(what, look)
        self.running.kill()

    def job(self) -> dict[str, Any]:
        return self.running.job(self.number)

    def folder(self, file: str) -> bool:
        """Whether the folder of one of this job's attempts has this file."""
        attempts = (self.running.folder / "data" / "work").glob("*/order.json")
        mine = [order.parent for order in attempts if self.commit in order.read_text()]
        return any((folder / file).exists() for folder in mine)

    def check_run(self, name: str = "validator / tiny") -> dict[str, Any]:
        runs = [run for run in self.hub.check_runs() if (run["head_sha"], run["name"]) == (self.commit, name)]
        assert len(runs) <= 1
        return runs[0] if runs else {}

    def slow(self, method: str, path: str) -> threading.Event:
        """GitHub acts on such a request and answers late; the event says that it has acted."""
        acted = threading.Event()

        def trouble(seen_method: str, seen_path: str, _: int) -> str | None:
            if seen_method == method and path in seen_path and not acted.is_set():
                acted.set()
                return "slow after"
            return None

        self.hub.double.trouble = trouble
        return acted

    def ends(self, verdict: str = "pass") -> None:
        """Everything comes to its end, once."""
        self.hub.double.trouble = lambda *_: None
        running = self.running
        running.until(f"job {self.number} ends", lambda: self.job().get("state") == State.ENDED)
        job = self.job()
        assert job["verdict"] == verdict
        assert [result["verdict"] for result in job["results"]] == [verdict]
        running.until("the check run is complete", lambda: self.check_run().get("status") == "completed")
        assert self.check_run()["conclusion"] == "success"
        running.until("and so is the aggregate", lambda: self.check_run("validator").get("status") == "completed")
        assert self.check_run("validator")["conclusion"] == "success"


def after_the_answer(life: Life) -> None:
    life.deliver()
    life.running.kill()


def before_the_answer(life: Life) -> None:
    """GitHub got no answer: it keeps the delivery, and the service finds it there unless it had stored it."""
    sender = threading.Thread(target=life.running.deliver, args=("pull_request", life.payload, life.guid))
    sender.start()
    life.running.kill()
    sender.join()
    life.hub.double.missed("pull_request", life.guid, life.payload)


def while_handing_over(life: Life) -> None:
    life.deliver()
    life.kill_when("it is being handed over", lambda: life.folder("order.json"))


def while_it_runs(life: Life) -> None:
    life.deliver()
    life.kill_when("the check reports progress", lambda: life.folder("progress.txt"))


def with_its_worker(life: Life) -> None:
    """The whole machine, as it were: the attempt is lost, and another is made."""
    life.deliver()
    life.running.until("the check reports progress", lambda: life.folder("progress.txt"))
    (worker,) = life.running.workers()
    life.running.kill()
    os.killpg(worker, signal.SIGKILL)


def while_the_result_comes_in(life: Life) -> None:
    life.deliver()
    parts = life.running.folder / "data" / "parts"
    life.kill_when("a result comes in", lambda: parts.is_dir() and any(parts.iterdir()))


def while_the_check_run_is_created(life: Life) -> None:
    acted = life.slow("POST", "/check-runs")
    life.deliver()
    life.kill_when("GitHub has made the check run", acted.is_set)


def while_the_end_is_published(life: Life) -> None:
    life.deliver()
    life.running.until("it runs", lambda: life.job().get("state") == State.RUNNING)
    life.running.until("it has ended", lambda: life.job().get("state") == State.ENDED)
    life.running.kill()


def several_times(life: Life) -> None:
    life.deliver()
    for _ in range(3):
        life.running.until("a step", lambda: life.job().get("state"))
        life.running.kill()
        life.running.start()
    life.running.kill()


def while_it_is_cancelled(life: Life) -> None:
    """A newer commit supersedes what runs; its own check is what has to end."""
    life.deliver()
    life.running.until("it runs", lambda: life.folder("progress.txt"))
    life.hub.repo.write("constraints.txt", "# newer\n")
    newer = life.hub.push(f"change-{life.number}")
    payload = payloads.pull_request(newer, life.pull, at="2026-11-30T10:00:00Z", base=life.base)
    assert life.running.deliver("pull_request", payload) == 202
    life.running.kill()
    life.running.start()
    old = life.number
    life.running.until("the old one is let go", lambda: life.running.job(old).get("state") == State.CANCELLED)
    life.running.until("told so", lambda: life.check_run().get("conclusion") == "cancelled")
    life.commit, life.number = newer, old + 1
    life.running.kill()


ROUNDS = (
    after_the_answer, before_the_answer, while_handing_over, while_it_runs, with_its_worker,
    while_the_result_comes_in, while_the_check_run_is_created, while_the_end_is_published, several_times,
    while_it_is_cancelled,
)  # fmt: skip


def test_killed_at_every_step_nothing_is_lost_and_nothing_done_twice(hub: Hub, running: Running) -> None:
    # Ten rounds on SQLite; on PostgreSQL those in which it is the database that matters.
    rounds = ROUNDS if hub.database_url.startswith("sqlite") else ROUNDS[1:6:2]
    for number, killed in enumerate(rounds, start=1):
        life = Life(hub, running, number)
        killed(life)
        running.start()
        life.ends()
    jobs = running.get("/api/v1/jobs")["jobs"]
    assert [job["state"] for job in jobs].count("ended") == len(rounds)
    assert {job["state"] for job in jobs} <= {"ended", "cancelled"}
    runs = hub.check_runs()
    assert len(runs) == len({run["external_id"] for run in runs})
    assert [run["name"] for run in runs].count("validator / tiny") == len(jobs)
    assert {run["status"] for run in runs} == {"completed"}
    assert running.starts >= 1 + len(rounds)
    running.until("no worker is left", lambda: not running.workers())
    assert running.get("/readyz") == {"status": "ok", "problems": []}
