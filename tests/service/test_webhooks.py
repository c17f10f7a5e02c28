"""What is accepted, what is refused, and with which status."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import text

from tests.service import payloads
from tests.service.hub import Hub
from tests.service.payloads import commit
from validator.service.settings import Secret


def test_a_pull_request_becomes_one_job_a_pipeline(hub: Hub) -> None:
    answer = hub.deliver("pull_request", payloads.pull_request(commit("a")))
    assert answer.status_code == 202
    assert answer.json()["outcome"] == "accepted"
    (job,) = hub.jobs()
    assert (job["repository"], job["commit"], job["pipeline"]) == ("team/train", commit("a"), "tiny")
    assert (job["state"], job["line"], job["pull_request"], job["requester"]) == ("waiting", "pull request 7", 7, "ann")


def test_a_wrong_signature_is_refused(hub: Hub) -> None:
    payload = payloads.pull_request(commit("a"))
    body = payloads.encoded(payload)
    wrong = payloads.headers("pull_request", body, "guid-0000001", secret="another secret")  # noqa: S106 - a wrong one
    for changes in (wrong["X-Hub-Signature-256"], "sha256=", "sha1=aaaa", "", "sha256=" + "é" * 64):
        headers = {**wrong, "X-Hub-Signature-256": changes.encode()}
        assert hub.client.post("/webhooks/github", content=body, headers=headers).status_code == 401
    del wrong["X-Hub-Signature-256"]
    assert hub.client.post("/webhooks/github", content=body, headers=wrong).status_code == 401
    assert hub.jobs() == []


def test_the_signature_covers_every_byte_of_the_body(hub: Hub) -> None:
    body = payloads.encoded(payloads.pull_request(commit("a")))
    headers = payloads.headers("pull_request", body, "guid-0000001")
    assert hub.client.post("/webhooks/github", content=body + b" ", headers=headers).status_code == 401
    assert hub.client.post("/webhooks/github", content=body, headers=headers).status_code == 202


def test_a_replay_with_a_fresh_delivery_id_is_refused(hub: Hub) -> None:
    payload = payloads.pull_request(commit("a"))
    assert hub.deliver("pull_request", payload, "guid-0000001").status_code == 202
    again = hub.deliver("pull_request", payload, "guid-0000002")
    assert (again.status_code, len(hub.jobs())) == (409, 1)


def test_the_same_delivery_again_is_acknowledged_and_does_nothing(hub: Hub) -> None:
    payload = payloads.pull_request(commit("a"))
    hub.deliver("pull_request", payload, "guid-0000001")
    again = hub.deliver("pull_request", payload, "guid-0000001")
    assert (again.status_code, again.json()["outcome"], len(hub.jobs())) == (200, "duplicate", 1)


def test_a_known_delivery_id_with_another_body_is_refused(hub: Hub) -> None:
    hub.deliver("pull_request", payloads.pull_request(commit("a")), "guid-0000001")
    other = hub.deliver("pull_request", payloads.pull_request(commit("b")), "guid-0000001")
    assert (other.status_code, len(hub.jobs())) == (409, 1)


def test_two_events_that_ask_for_the_same_make_one_job(hub: Hub) -> None:
    hub.deliver("pull_request", payloads.pull_request(commit("a")))
    other = hub.deliver("check_suite", payloads.check_suite(commit("a"), "change", pulls=(7,)))
    assert (other.status_code, other.json()["outcome"], len(hub.jobs())) == (202, "duplicate", 1)


@pytest.mark.parametrize(
    ("body", "event", "status"),
    [
        (b"", "push", 400),
        (b"{", "push", 400),
        (b"[1]", "push", 400),
        (b"\xff\xfe", "push", 400),
        (b"[" * 100_000, "push", 400),
        (b'{"action": "opened"}', "pull_request", 400),
        (b'{"action": "opened", "number": "x", "pull_request": []}', "pull_request", 400),
        (b'{"action": "requested", "check_suite": {"head_sha": 5, "app": {"id": 4711}}}', "check_suite", 400),
        (b"{}", "", 400),
        (b"{}", "Pull-Request!", 400),
        (b"{}", "no_such_event", 202),
    ],
)
def test_malformed_bodies_are_refused(hub: Hub, body: bytes, event: str, status: int) -> None:
    headers = payloads.headers(event, body, "guid-0000001")
    assert hub.client.post("/webhooks/github", content=body, headers=headers).status_code == status
    assert hub.jobs() == []


def test_another_content_type_and_a_missing_delivery_id_are_refused(hub: Hub) -> None:
    body = payloads.encoded(payloads.pull_request(commit("a")))
    form = {
        **payloads.headers("pull_request", body, "guid-0000001"),
        "Content-Type": "application/x-www-form-urlencoded",
    }
    assert hub.client.post("/webhooks/github", content=body, headers=form).status_code == 415
    assert (
        hub.client.post("/webhooks/github", content=body, headers=payloads.headers("push", body, "")).status_code == 400
    )


def test_a_body_over_the_limit_is_refused_however_it_comes(hub: Hub) -> None:
    hub.changes["webhook_bytes"] = 1000
    body = b'{"x": "' + b"a" * 1000 + b'"}'
    headers = payloads.headers("push", body, "guid-0000001")
    assert hub.client.post("/webhooks/github", content=body, headers=headers).status_code == 413

    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b"a" * 100

    assert hub.client.post("/webhooks/github", content=pieces(), headers=headers).status_code == 413


def test_without_a_secret_nothing_is_accepted(hub: Hub) -> None:
    hub.changes["webhook_secret"] = Secret("")
    assert hub.deliver("pull_request", payloads.pull_request(commit("a"))).status_code == 503
    assert hub.client.get("/readyz").status_code == 503


def test_events_of_other_repositories_and_other_apps_are_ignored(hub: Hub) -> None:
    hub.changes["repositories"] = ("team/other",)
    assert hub.deliver("pull_request", payloads.pull_request(commit("a"))).json()["outcome"] == "ignored"
    foreign = payloads.check_suite(commit("a"))
    foreign["check_suite"]["app"]["id"] = 1
    assert hub.deliver("check_suite", foreign).json()["outcome"] == "ignored"


def test_nothing_of_a_fork_runs_by_itself(hub: Hub) -> None:
    answer = hub.deliver("pull_request", payloads.pull_request(commit("a"), fork="stranger/train"))
    assert (answer.status_code, answer.json()["outcome"]) == (202, "ignored")
    assert "/validate" in answer.json()["detail"]
    assert hub.jobs() == []


def test_a_locked_database_is_not_acknowledged(hub: Hub) -> None:
    lock = "SELECT 1" if hub.database_url.startswith("sqlite") else "LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE"
    with hub.service.database.write() as session:
        session.execute(text(lock))
        answer = hub.deliver("pull_request", payloads.pull_request(commit("a")), "guid-0000001")
        assert answer.status_code == 503
        assert "lock" in answer.json()["detail"]
    assert hub.deliver("pull_request", payloads.pull_request(commit("a")), "guid-0000001").status_code == 202
