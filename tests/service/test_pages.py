"""Pages and API as text: what they show, and that foreign text stays text."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.service import payloads
from tests.service.hub import Hub
from tests.service.payloads import commit
from validator.service.pages.chart import Point, overhead_chart
from validator.service.tables import Job

PAGES = ("/", "/pipelines", "/pipelines/tiny", "/goldens", "/waivers", "/deliveries", "/changes", "/jobs/1")
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
def filled(hub: Hub) -> Hub:
    """Two jobs, one of them superseded, and a golden."""
    hub.add_golden()
    hub.deliver("pull_request", payloads.pull_request(commit("a"), at="2026-11-29T10:00:00Z"))
    hub.deliver("pull_request", payloads.pull_request(commit("b"), at="2026-11-29T10:00:01Z"))
    return hub


def page(hub: Hub, address: str) -> str:
    answer = hub.client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    return str(answer.text)


@pytest.mark.parametrize("address", PAGES)
def test_every_page_answers_and_allows_nothing_from_elsewhere(filled: Hub, address: str) -> None:
    answer = filled.client.get(address, headers={"Accept": "text/html"})
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "<script>" not in answer.text


def test_the_list_is_narrowed_by_filters(filled: Hub) -> None:
    assert commit("a")[:12] in page(filled, "/")
    narrowed = page(filled, "/?state=waiting")
    assert commit("b")[:12] in narrowed
    assert commit("a")[:12] not in narrowed
    assert [job["commit"] for job in filled.jobs(commit=commit("a")[:8])] == [commit("a")]
    assert filled.jobs(pull_request="8") == filled.jobs(pull_request="x") == filled.jobs(verdict="pass") == []
    assert len(filled.jobs(pull_request="7")) == len(filled.jobs(pipeline="tiny", repository="team/train")) == 2
    assert "No check is like that." in page(filled, "/?commit=%25")


def test_a_long_list_has_pages(hub: Hub) -> None:
    for number in range(120):
        hub.deliver("pull_request", payloads.pull_request(commit(f"c{number}"), number + 1))
    first = hub.client.get("/api/v1/jobs").json()
    assert (first["total"], first["pages"], len(first["jobs"])) == (120, 3, 50)
    assert len(hub.client.get("/api/v1/jobs?page=3").json()["jobs"]) == 20
    assert hub.client.get("/api/v1/jobs?page=99").json()["page"] == 3
    assert hub.client.get("/api/v1/jobs?page=0").status_code == 422


def test_foreign_text_stays_text(filled: Hub) -> None:
    with filled.service.database.write() as session:
        job = session.get_one(Job, 2)
        job.sentence = job.progress = job.line = HOSTILE
    for address in ("/", "/jobs/2", f"/?commit={quote(HOSTILE)}", "/jobs/99", "/pipelines/%3Cscript%3E"):
        text = filled.client.get(address, headers={"Accept": "text/html"}).text
        assert "<script>alert" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_what_is_not_there_is_said_as_a_page_and_as_json(hub: Hub) -> None:
    for address in ("/jobs/5", "/jobs/99999999999999999999", "/nothing", "/pipelines/none", "/jobs/1/results/1"):
        answer = hub.client.get(address, headers={"Accept": "text/html"})
        assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8"), address
    answer = hub.client.get("/api/v1/jobs/5")
    assert (answer.status_code, answer.json()) == (404, {"detail": "There is no job 5."})


def test_goldens_and_waivers_are_those_of_the_base_revision(filled: Hub) -> None:
    (golden,) = filled.client.get("/api/v1/goldens").json()
    assert (golden["pipeline"], golden["approver"], golden["supersedes"]) == ("tiny", "Ann", None)
    assert [version["digest"] for version in golden["chain"]] == [golden["digest"]]
    assert golden["digest"] in page(filled, "/goldens")
    assert filled.client.get("/api/v1/waivers").json() == []


def test_the_api_describes_itself(hub: Hub) -> None:
    found = hub.client.get("/api/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    assert {"/api/v1/jobs", "/api/v1/jobs/{number}", "/api/v1/attempts/{attempt}/result", "/metrics", "/readyz"} <= set(
        found["paths"]
    )
    for path in found["paths"].values():
        for operation in path.values():
            assert operation["summary"]


def test_health_and_readiness(hub: Hub) -> None:
    assert hub.client.get("/healthz").json() == {"status": "ok"}
    assert hub.client.get("/readyz").json() == {"status": "ok", "problems": []}


def test_metrics_count_jobs_webhooks_and_what_is_behind(filled: Hub) -> None:
    text = filled.client.get("/metrics").text
    assert 'validator_service_jobs{state="waiting"} 1.0' in text
    assert 'validator_service_jobs{state="cancelled"} 1.0' in text
    assert 'validator_service_webhooks_total{event="pull_request",outcome="accepted"} 2.0' in text
    assert "validator_service_check_runs_behind 2.0" in text
    assert "validator_service_ready 1.0" in text


def test_the_chart_has_every_point_and_its_interval() -> None:
    points = [Point(0.1 + 0.01 * n, 0.08, 0.15, f"<commit {n}>") for n in range(5)]
    chart = overhead_chart(points)
    assert chart.count("<circle") == 5
    assert "<commit" not in chart
    assert overhead_chart([]) == ""
