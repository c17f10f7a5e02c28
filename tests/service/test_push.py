"""Results: who may push them, what is taken, and that they are judged anew."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import httpx
import pytest

from tests.service import payloads
from tests.service.hub import Hub
from validator.service.results.pack import pack


@pytest.fixture
def running(hub: Hub) -> Hub:
    """A pull request whose check was handed over, and a golden in the base revision."""
    hub.add_golden()
    number, sha = hub.pull()
    hub.deliver("pull_request", payloads.pull_request(sha, number))
    hub.round("jobs")
    return hub


def token(hub: Hub, repository: str = payloads.NAME, seconds: float = 3600.0) -> str:
    return hub.service.tokens.create("tests", repository, seconds)


def attempt(hub: Hub) -> str:
    return f"{hub.key_of_job()[:20]}-1"


def packed(out: Path) -> bytes:
    stream = io.BytesIO()
    pack(out, stream)  # type: ignore[arg-type]
    return stream.getvalue()


def push(hub: Hub, body: bytes, bearer: str | None = None, key: str = "") -> httpx.Response:
    digest = hashlib.sha256(body).hexdigest()
    return push_as(hub, body, digest, token(hub) if bearer is None else bearer, key)


def push_as(hub: Hub, body: bytes, digest: str, bearer: str | None = None, key: str = "") -> httpx.Response:
    sent = {"Authorization": f"Bearer {token(hub) if bearer is None else bearer}", "X-Content-SHA256": digest}
    answer: httpx.Response = hub.client.put(
        f"/api/v1/attempts/{key or attempt(hub)}/result", content=body, headers=sent
    )
    return answer


def archive(**files: bytes | tarfile.TarInfo) -> bytes:
    """A packed result with these files."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as opened:
        for name, content in files.items():
            if isinstance(content, tarfile.TarInfo):
                opened.addfile(content)
                continue
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def test_a_result_counts_and_the_check_run_says_so(running: Hub) -> None:
    answer = push(running, packed(running.good_check()))
    assert (answer.status_code, answer.json()["detail"]) == (201, "The result counts: pass.")
    job = running.job()
    assert (job["state"], job["verdict"], job["results"][0]["claimed"]) == ("ended", "pass", "pass")
    running.due()
    running.round("publishing")
    (run,) = running.check_runs()
    assert (run["status"], run["conclusion"]) == ("completed", "success")
    assert [action["identifier"] for action in run["actions"]] == ["run_again"]


def test_a_change_of_bits_is_found_again_and_can_be_rebaselined(running: Hub) -> None:
    running.project.double.misbehave(every={"diverge": {"step": 4, "group": "parameters"}})
    assert push(running, packed(running.run_check())).status_code == 201
    assert running.job()["verdict"] == "changed"
    running.due()
    running.round("publishing")
    (run,) = running.check_runs()
    assert run["conclusion"] == "failure"
    assert [action["identifier"] for action in run["actions"]] == ["run_again", "rebaseline"]
    assert "parameters" in run["output"]["summary"] + (run["output"]["text"] or "")
    running.due()
    running.round("jobs")
    assert running.job()["attempt"] == 1  # a mismatch is never retried


def test_pushed_twice_it_is_taken_once(running: Hub) -> None:
    out = running.good_check()
    body = packed(out)
    assert [push(running, body).status_code for _ in range(3)] == [201, 200, 200]
    assert len(running.job()["results"]) == 1
    report = running.load(out / "report.json")
    (out / "report.json").write_text(json.dumps(report))
    other = packed(out)
    assert other != body
    assert push(running, other).status_code == 409
    assert len(running.job()["results"]) == 1


def test_equal_folders_give_equal_bytes(running: Hub) -> None:
    out = running.good_check()
    assert packed(out) == packed(out)


def test_a_claim_that_the_trajectories_do_not_bear_out_is_no_pass(running: Hub) -> None:
    running.project.double.misbehave(every={"diverge": {"step": 4, "group": "parameters"}})
    out = running.run_check()
    honest = running.load(out / "report.json")
    claim = running.load(running.good_check() / "report.json")
    assert (honest["verdict"], claim["verdict"]) == ("changed", "pass")
    (out / "report.json").write_text(json.dumps(claim))
    assert push(running, packed(out)).status_code == 201
    job = running.job()
    assert (job["results"][0]["claimed"], job["results"][0]["verdict"]) == ("pass", "error")


def test_an_error_of_the_machinery_is_tried_again(running: Hub) -> None:
    running.project.double.misbehave(reference={"crash": {"step": 3}})
    answer = push(running, packed(running.run_check()))
    assert answer.status_code == 201
    job = running.job()
    assert (job["state"], job["verdict"], job["results"][0]["verdict"]) == ("waiting", "", "error")
    running.due()
    running.round("jobs")
    assert (running.job()["state"], running.job()["attempt"]) == ("running", 2)


def test_a_stamped_run_decides_nothing(running: Hub) -> None:
    out = running.run_check("out", "--env", "ATEN_CPU_CAPABILITY=default")
    assert push(running, packed(out)).status_code == 201
    assert running.job()["results"][0]["gating"] is False
    running.due()
    running.round("publishing")
    assert running.check_runs()[0]["conclusion"] != "success"


def test_a_result_of_what_was_superseded_is_refused(running: Hub) -> None:
    body = packed(running.good_check())
    number = running.job()["pull_request"]
    running.deliver("pull_request", payloads.pull_request("5" * 40, number, at="2026-11-30T10:00:00Z"))
    assert push(running, body).status_code == 409


@pytest.mark.parametrize("bearer", ["", "vpt_wrong", "x y"])
def test_without_a_token_nothing_is_taken(running: Hub, bearer: str) -> None:
    answer = push(running, b"x", bearer)
    assert answer.status_code == 401


def test_tokens_expire_are_revoked_and_hold_for_one_repository(running: Hub) -> None:
    body = packed(running.good_check())
    assert push(running, body, token(running, "team/other")).status_code == 403
    assert push(running, body, token(running, seconds=-1.0)).status_code == 401
    good = token(running)
    (made, *_) = running.service.tokens.list()
    running.service.tokens.revoke(made.id)
    assert push(running, body, good).status_code == 401
    assert push(running, body, token(running), key="0" * 20 + "-1").status_code == 403
    assert push(running, body, token(running), key=f"{running.key_of_job()[:20]}-2").status_code == 403
    assert running.job()["results"] == []


def test_a_jobs_own_token_holds_for_that_job_alone(running: Hub) -> None:
    other = running.service.tokens.create("tests", payloads.NAME, 60.0, job_key="f" * 64)
    assert push(running, b"x", other).status_code == 403


def test_the_digest_is_verified(running: Hub) -> None:
    body = packed(running.good_check())
    answer = push_as(running, body, "0" * 64)
    assert answer.status_code == 422
    assert push_as(running, body, "x").status_code == 400
    assert running.job()["results"] == []


def test_malformed_and_forged_content_is_refused(running: Hub) -> None:
    out = running.good_check()
    report = (out / "report.json").read_bytes()
    link = tarfile.TarInfo("report.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    tree = tarfile.TarInfo("launches/reference/trajectory/tree.bin")
    tree.type, tree.linkname = tarfile.LNKTYPE, "/etc/passwd"
    other = json.dumps(json.loads(report) | {"pipeline": "another"}).encode()
    yesterday = json.dumps(json.loads(report) | {"started": "yesterday"}).encode()
    half = json.dumps(json.loads(report) | {"overhead": {"schema": "validator/overhead", "mode": "full"}}).encode()
    forged = [
        b"", b"no archive", gzip.compress(b"no archive"), packed(out)[:2000], archive(), archive(x=b""),
        archive(**{"report.json": b"{"}), archive(**{"report.json": b"[]"}), archive(**{"report.json": b"{}"}),
        archive(**{"report.json": b"[" * 100_000}), archive(**{"report.json": other}),
        archive(**{"report.json": yesterday}), archive(**{"report.json": half}),
        archive(**{"report.json": link}), archive(**{"report.json": report, "tree": tree}),
        archive(**{"report.json": report, "../../escaped": b"x"}), archive(**{"report.json": report, "/etc/x": b"x"}),
        archive(**{"report.json": report, "launches/reference/trajectory/trajectory.json": b"{}"}),
    ]  # fmt: skip
    for body in forged:
        assert push(running, body).status_code == 422, body[:40]
    assert running.job()["state"] == "running"
    assert running.job()["results"] == []
    assert list((running.settings.folder / "parts").glob("*")) == []


def test_a_result_over_the_limit_is_refused_packed_or_unpacked(running: Hub) -> None:
    body = archive(**{"report.json": b"0" * 20_000_000})
    object.__setattr__(running.service.settings, "result_bytes", 1_000_000)
    assert len(body) < 1_000_000
    assert push(running, body).status_code == 413
    assert push(running, b"0" * 1_000_001).status_code == 413


def test_a_trajectory_edited_on_the_way_is_no_pass(running: Hub) -> None:
    out = running.good_check()
    leaves = out / "launches" / "reference" / "trajectory" / "rank-00000.leaves"
    content = bytearray(leaves.read_bytes())
    content[100] ^= 1
    leaves.write_bytes(content)
    answer = push(running, packed(out))
    assert (answer.status_code, running.job()["verdict"]) in ((422, ""), (201, "error")) or running.job()[
        "state"
    ] == "waiting"
    assert running.job()["verdict"] != "pass"


def test_a_result_that_nobody_asked_for_makes_a_job_of_its_own(running: Hub) -> None:
    body = packed(running.good_check())
    headers = {"Authorization": f"Bearer {token(running)}", "X-Content-SHA256": hashlib.sha256(body).hexdigest()}
    place = f"/api/v1/repositories/team/train/commits/{'7' * 40}/results"
    assert running.client.put(f"{place}/tiny", content=body, headers=headers).status_code == 201
    assert running.client.put(f"{place}/tiny", content=body, headers=headers).status_code == 200
    assert running.client.put(f"{place}/nothing", content=body, headers=headers).status_code == 422
    (job, _) = running.jobs()
    assert (job["commit"], job["action"], job["verdict"]) == ("7" * 40, "pushed", "pass")


def test_progress_is_shown(running: Hub) -> None:
    place = f"/api/v1/attempts/{attempt(running)}/progress"
    headers = {"Authorization": f"Bearer {token(running)}"}
    said = {"line": "[1/4] step 3 of 9\x1b[31m"}
    assert running.client.post(place, json=said, headers=headers).status_code == 204
    assert running.job()["progress"] == "[1/4] step 3 of 9\\x1b[31m"
    assert running.client.post(place, json={"line": "x" * 501}, headers=headers).status_code == 422
    assert running.client.post(place, json=said).status_code == 401
