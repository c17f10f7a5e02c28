"""GitHub's own payloads, of every event type: accepted, or ignored by intention, and never a 500."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.service import payloads
from tests.service.hub import Hub
from validator.service.settings import Secret

pytestmark = pytest.mark.system

EXAMPLES = Path(__file__).parents[1] / "node/node_modules/@octokit/webhooks-examples/api.github.com/index.json"

#: What a value is replaced with.
WRONG: tuple[Any, ...] = (None, 5, "x", [], {})

#: Event types of which at least one example asks for something.
ASKING = {"check_run", "check_suite", "merge_group", "pull_request"}


@pytest.fixture
def open_hub(hub: Hub) -> Hub:
    """A service that takes the check runs of any App for its own."""
    hub.changes |= {"github_app": "", "github_private_key": Secret(""), "engine": "local", "pipelines": ("tiny",)}
    return hub


def examples() -> list[tuple[str, dict[str, Any]]]:
    content = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return [(each["name"], example) for each in content for example in each["examples"]]


def test_every_event_type_is_accepted_or_ignored_deliberately(open_hub: Hub) -> None:
    found = examples()
    assert len({event for event, _ in found}) == 58
    outcomes: Counter[tuple[str, int, str]] = Counter()
    for number, (event, payload) in enumerate(found):
        answer = open_hub.deliver(event, payload, f"guid-{number:08}")
        outcomes[event, answer.status_code, answer.json()["outcome"]] += 1
    assert {status for _, status, _ in outcomes} <= {202, 409}  # some examples are there twice: replays
    assert {event for event, _, outcome in outcomes if outcome == "accepted"} == ASKING
    assert {event for event, _, outcome in outcomes if outcome == "duplicate"} <= ASKING
    open_hub.round("plans")  # the examples' commits are nowhere: every pipeline is called for
    jobs = open_hub.jobs()
    assert len(jobs) >= len(ASKING)
    assert all(len(job["commit"]) == 40 for job in jobs)


def test_no_value_that_is_missing_or_of_another_type_gives_a_500(open_hub: Hub) -> None:
    """Each value of an asking event's payload, two levels deep, is left out and replaced."""
    seen: Counter[int] = Counter()
    chosen = {event: payload for event, payload in examples() if event in ASKING | {"issue_comment"}}
    for event, payload in chosen.items():
        for outer, content in payload.items():
            inner: list[str | None] = [None, *content] if isinstance(content, dict) else [None]
            for name in inner:
                for value in WRONG:
                    changed = json.loads(json.dumps(payload))
                    target = changed if name is None else changed[outer]
                    target[outer if name is None else name] = value
                    body = payloads.encoded(changed)
                    headers = payloads.headers(event, body, f"guid-{sum(seen.values()):08}")
                    answer = open_hub.service.receiver.webhook({k.lower(): v for k, v in headers.items()}, body)
                    seen[answer.status] += 1
    assert set(seen) <= {202, 400, 409}
    assert seen[400] > 50
