"""The whole way on real Megatron: webhook, job, check, push, check run, page, Prometheus; then the button."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.monitoring.servers import free_port, get, server, wait_for
from tests.service import payloads
from tests.service.hub import Hub
from tests.service.running import ROOT, Running

pytestmark = [
    pytest.mark.system, pytest.mark.slow, pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
]  # fmt: skip


@pytest.fixture
def running(hub: Hub, tmp_path: Path) -> Iterator[Running]:
    """The service for the project's own pipelines and goldens, with a worker that launches real Megatron."""
    variables = {
        "VALIDATOR_DATA": str(tmp_path / "data"), "VALIDATOR_DATABASE": hub.database_url,
        "VALIDATOR_PROJECT": str(ROOT), "VALIDATOR_PIPELINES": "nemotron-cpu", "VALIDATOR_GITHUB_URL": hub.double.url,
        "VALIDATOR_WEBHOOK_SECRET": payloads.SECRET, "VALIDATOR_GITHUB_APP": str(payloads.APP),
        "VALIDATOR_GITHUB_PRIVATE_KEY": hub.key,
    }  # fmt: skip
    made = Running(tmp_path, variables)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def prometheus(running: Running, tmp_path: Path) -> Iterator[str]:
    """A real Prometheus that scrapes the service."""
    address = f"127.0.0.1:{free_port()}"
    config = tmp_path / "prometheus.yml"
    target = running.url.removeprefix("http://")
    config.write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: service, honor_labels: true, static_configs: [{{targets: ['{target}']}}]}}]\n"
    )
    with server(
        "prometheus", tmp_path / "prometheus.log", f"--web.listen-address={address}", f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'prometheus'}", ready=f"http://{address}/-/ready",
    ):  # fmt: skip
        yield f"http://{address}"


def press(hub: Hub, running: Running, person: str) -> dict[str, str]:
    """The re-baseline button of the check run; gives the request that came of it, settled."""
    (run,) = hub.check_runs()
    payload = payloads.check_run(run["id"], run["external_id"], "requested_action", "rebaseline", person)
    assert running.deliver("check_run", payload) == 202

    def settled() -> dict[str, str]:
        requests = [each for each in running.job(1)["requests"] if each["person"] == person]
        return requests[0] if requests and requests[0]["state"] not in ("asked", "starting") else {}

    return running.until(f"{person}'s request is settled", settled)


def test_from_a_webhook_to_prometheus_and_the_button(hub: Hub, running: Running, prometheus: str) -> None:
    number, sha = hub.pull()
    assert running.deliver("pull_request", payloads.pull_request(sha, number)) == 202
    running.until("it runs", lambda: running.job(1).get("progress"))
    running.until("steps are told", lambda: "step" in running.job(1)["progress"], 120)
    running.until("the check ends", lambda: running.job(1).get("state") == "ended", 400)
    job = running.job(1)
    assert (job["verdict"], job["attempt"], len(job["results"])) == ("pass", 1, 1)

    running.until("the check run is complete", lambda: hub.check_runs()[0]["status"] == "completed")
    (run,) = hub.check_runs()
    assert (run["name"], run["head_sha"], run["conclusion"]) == ("validator / nemotron-cpu", sha, "success")
    assert run["details_url"] == f"{running.url}/jobs/1"
    page = running.text("/jobs/1/results/1")
    assert "nemotron-cpu" in page
    assert "lm_loss" in page

    def scraped(expression: str) -> list[str]:
        answer = get(f"{prometheus}/api/v1/query?query={expression}")
        return [series["value"][1] for series in answer["data"]["result"]]

    passed = "validator_service_results_total{pipeline%3D%22nemotron-cpu%22,verdict%3D%22pass%22}"
    wait_for("the result in Prometheus", lambda: scraped(passed) == ["1"])
    assert scraped("validator_service_ready") == ["1"]
    assert len(scraped("validator_golden_recorded_timestamp_seconds{pipeline%3D%22nemotron-cpu%22}")) == 1

    hub.double.files[".github/CODEOWNERS"] = "/golden/ @team/numerics\n"
    hub.double.members["team/numerics"] = {"ned"}
    refused = press(hub, running, "ann")
    assert (refused["state"], hub.double.dispatched) == ("refused", [])
    assert press(hub, running, "ned")["state"] == "done"
    ((workflow, body),) = hub.double.dispatched
    assert (workflow, body["ref"]) == ("rebaseline.yml", "main")
    assert (body["inputs"]["pull-request"], body["inputs"]["pipelines"]) == (str(number), "nemotron-cpu")
    assert "@ned" in body["inputs"]["reason"]
    assert payloads.SECRET not in running.log.read_text()
