"""GitHub at its worst: nothing is doubled, nothing is lost, and no verdict changes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.github.hub import Hub
from validator.report.model import EnvironmentDifferenceRow

ROWS = tuple(
    EnvironmentDifferenceRow("packages", f"nvidia-part-{number}", "1.0.0", "1.0.1", True, "claimed")
    for number in range(120)
)


def prepared(hub: Hub) -> str:
    """A change with 120 annotations and a comment to come; returns the result's folder."""
    hub.repo.write("constraints.txt", "".join(f"nvidia-part-{number}==1.0.1\n" for number in range(120)))
    hub.repo.commit("a bump")
    hub.pull()
    return str(hub.report("changed", environment_difference=ROWS))


def outcome(hub: Hub) -> str:
    """All that GitHub holds in the end, without numbers."""
    runs = [
        (run["name"], run["status"], run["conclusion"], run["output"], run["annotations"])
        for run in sorted(hub.double.state.check_runs, key=lambda run: run["name"])
    ]
    return json.dumps([runs, hub.comments])


def each_request_once(fault: str, writes_only: bool = False) -> Callable[[str, str, int], str | None]:
    """Each kind of request meets the fault the first three times it is made."""
    met: dict[tuple[str, str], int] = {}

    def trouble(method: str, path: str, count: int) -> str | None:
        if writes_only and method == "GET":
            return None
        met[method, path] = met.get((method, path), 0) + 1
        return fault if met[method, path] <= 2 else None

    return trouble


@pytest.mark.parametrize(
    "fault", ["502", "500", "drop before", "drop after", "rate limit", "secondary rate limit", "slow after"]
)
def test_whatever_goes_wrong_the_end_is_the_same(hub: Hub, fault: str) -> None:
    folder = prepared(hub)
    hub.double.trouble = each_request_once(fault, writes_only=fault in ("slow after", "rate limit"))
    ran = hub.publish(folder)
    assert ran.code == 0, ran.err
    troubled = outcome(hub)
    assert [len(run["annotations"]) for run in hub.double.state.check_runs if run["annotations"]] == [120]
    assert len(hub.double.state.check_runs) == 2
    assert len(hub.comments) == 1

    hub.double.trouble = lambda method, path, count: None
    hub.double.state.check_runs.clear()
    hub.double.state.comments.clear()
    hub.publish(folder)
    assert outcome(hub) == troubled


def test_a_token_that_expires_in_the_middle_is_renewed(hub: Hub) -> None:
    hub.double.requests_a_token = 3
    ran = hub.publish(prepared(hub))
    assert ran.code == 0, ran.err
    assert len(hub.double.tokens) > 2
    assert len(hub.comments) == 1


def test_a_token_that_is_about_to_expire_is_renewed_before(hub: Hub) -> None:
    hub.double.token_seconds = 60.0
    assert hub.publish(prepared(hub)).code == 0
    assert len(hub.double.tokens) > 3


def test_github_away_changes_no_verdict_and_keeps_the_results(hub: Hub) -> None:
    folder = prepared(hub)
    hub.upload(hub.results / "tiny")
    kept = hub.project.folder.parent / "kept"
    hub.double.trouble = lambda method, path, count: "503" if method == "POST" and "check-runs" in path else None
    ran = hub.publish("--download", str(kept))
    assert ran.code == 3
    assert ran.err.startswith("validator: GitHub at ")
    assert f"Results are kept in {kept}: run validator github publish again." in ran.err
    assert len(list(kept.glob("*.zip"))) == 1
    hub.double.trouble = lambda method, path, count: None
    assert hub.publish(*map(str, kept.glob("*.zip"))).code == 0
    assert hub.runs()["validator"]["conclusion"] == "failure"
    assert folder


def test_a_rate_limit_that_lasts_is_a_sentence(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("validator.github.transport.LONGEST_WAIT", 0.5)
    hub.double.trouble = lambda method, path, count: "secondary rate limit"
    ran = hub.publish(prepared(hub))
    assert ran.code == 3
    assert "rate limit ends in 1 s, longer than is waited" in ran.err


def test_a_key_that_is_none_is_a_sentence(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VALIDATOR_APP_KEY", "-----BEGIN NOTHING-----")
    ran = hub.publish(prepared(hub))
    assert ran.code == 2
    assert ran.err.startswith("validator: VALIDATOR_APP_KEY is no private key")
    assert "NOTHING" not in ran.err


def test_no_secret_is_ever_printed(hub: Hub) -> None:
    hub.double.trouble = lambda method, path, count: "404"
    ran = hub.publish(prepared(hub))
    assert ran.code == 3
    assert "token-" not in ran.out + ran.err
    assert "PRIVATE" not in ran.out + ran.err
