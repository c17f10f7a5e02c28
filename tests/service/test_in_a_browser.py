"""The pages in a real Chromium: from list to tensor, by keyboard, in both themes, with nothing from elsewhere."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.report.html.browser import Visit
from tests.service import payloads
from tests.service.hub import Hub
from tests.service.running import Running
from validator.service.results.pack import pack

pytestmark = [pytest.mark.system, pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)]

#: What goes wrong in each launch, by the verdict that it gives.
FAULTS: dict[str, dict[str, Any]] = {
    "pass": {},
    "changed": {"every": {"diverge": {"step": 4, "group": "parameters"}}},
    "nondeterministic": {"every": {"random": {"step": 5}}},
    "resume_broken": {"resume_2": {"lost_optimizer": True}},
}
VERDICTS = (*FAULTS, "rebaselined")
PAGES = (
    "/",
    "/jobs/1",
    "/jobs/2",
    "/pipelines",
    "/pipelines/tiny",
    "/goldens",
    "/waivers",
    "/deliveries",
    "/changes",
    "/jobs/99",
)


@pytest.fixture
def running(hub: Hub, tmp_path: Path) -> Iterator[Running]:
    """A service with a result of each verdict, and one job that waits."""
    hub.changes["data"] = str(tmp_path / "data")
    hub.add_golden()
    token = hub.service.tokens.create("tests", payloads.NAME, 3600.0)
    for number, verdict in enumerate(VERDICTS, start=1):
        base = ""
        if verdict == "rebaselined":
            base = hub.repo.git("rev-parse", "main")
            pull, sha, out = rebaselined(hub)
        else:
            pull, sha = hub.pull(f"change-{number}")
            out = hub.kept_check(verdict, FAULTS[verdict])
        hub.deliver("pull_request", payloads.pull_request(sha, pull, base=base))
        hub.round("plans")
        hub.round("jobs")
        stream = io.BytesIO()
        pack(out, stream)  # type: ignore[arg-type]
        body = stream.getvalue()
        answer = hub.client.put(
            f"/api/v1/attempts/{hub.key_of_job(number)[:20]}-1/result", content=body,
            headers={"Authorization": f"Bearer {token}", "X-Content-SHA256": hashlib.sha256(body).hexdigest()},
        )  # fmt: skip
        assert answer.json()["detail"] == f"The result counts: {verdict}."
    hub.deliver("pull_request", payloads.pull_request("9" * 40, 99))
    variables = {
        "VALIDATOR_DATA": hub.settings.data, "VALIDATOR_DATABASE": hub.database_url,
        "VALIDATOR_PROJECT": hub.settings.project, "VALIDATOR_WEBHOOK_SECRET": payloads.SECRET,
        "VALIDATOR_WORKER_OPTIONS": "--no-such-option",
    }  # fmt: skip
    made = Running(tmp_path, variables)
    made.start()
    yield made
    made.stop()


def rebaselined(hub: Hub) -> tuple[int, str, Path]:
    """A pull request that changes the bits and brings the golden of them: its number, its head, and its check."""
    hub.repo.git("checkout", "-q", "-b", "rebaselined")
    hub.project.double.misbehave(every={"diverge": {"step": 4, "group": "parameters"}, "jump": 1.0001})
    assert hub.project.record_golden("--accept-drift").code == 0
    pull, sha = hub.pull("rebaselined")
    out = hub.run_check("rebaselined", "--base", "main")
    hub.project.double.misbehave()
    hub.repo.git("checkout", "-q", "main")
    return pull, sha, out


def look(browser: Browser, scheme: str, width: int = 1200) -> Visit:
    """A window that notes every complaint, and every request to another place than the service."""
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light", viewport={"width": width, "height": 900}
    )
    seen = Visit(context.new_page())
    seen.page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    return seen


def pictures() -> Path | None:
    """Where screenshots are to go, for a person to look at."""
    folder = os.environ.get("VALIDATOR_SCREENSHOTS")
    return Path(folder) if folder else None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_clean_in_both_themes(browser: Browser, running: Running, scheme: str) -> None:
    reports = [f"/jobs/{number}/results/1" for number in range(1, len(VERDICTS) + 1)]
    for width in (1200, 390):
        seen = look(browser, scheme, width)
        for address in (*PAGES, *reports):
            seen.page.goto(running.url + address)
            assert seen.violations() == [], address
            if folder := pictures():
                seen.page.screenshot(path=folder / f"{scheme}-{width}{re.sub('[^a-z0-9]+', '-', address)}.png")
        assert [each for each in seen.complaints if "404" not in each] == []
        assert {url.startswith((running.url, "data:", "blob:")) for url in seen.requests} == {True}
        if width == 390:
            assert seen.page.evaluate("document.documentElement.scrollWidth <= 400")
        seen.page.context.close()


def press_to(page: Page, text: str, most: int = 60) -> None:
    """Tab until the focus is on something that says ``text``."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "A" and text in page.inner_text(":focus"):
            return
    raise AssertionError(f"the keyboard does not reach {text!r}")


def test_from_the_list_to_the_report_by_keyboard(browser: Browser, running: Running) -> None:
    seen = look(browser, "light")
    page = seen.page
    page.goto(running.url)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    commit = next(job["commit"] for job in running.get("/api/v1/jobs")["jobs"] if job["verdict"] == "changed")
    press_to(page, commit[:12])
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/2")
    assert "changed" in page.inner_text(".headline")
    press_to(page, "Open the report")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/2/results/1")
    text = page.inner_text("body")
    assert "decoder.layers.0.weight" in text
    assert "step 4" in text or "step:4" in text
    assert seen.complaints == []
    page.context.close()


def test_filters_work_without_a_mouse_and_without_script(browser: Browser, running: Running) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(running.url)
    page.select_option("select[name=verdict]", "changed")
    page.press("input[name=commit]", "Enter")
    assert page.locator("tbody tr").count() == 1
    assert "1 check." in page.inner_text("main")
    context.close()


def test_a_job_is_shown_live(browser: Browser, running: Running) -> None:
    """The page of the job that waits follows it to its end without being loaded again by hand."""
    seen = look(browser, "dark")
    jobs = running.get("/api/v1/jobs")["jobs"]
    number = max(job["id"] for job in jobs)
    seen.page.goto(f"{running.url}/jobs/{number}")
    seen.page.wait_for_selector(".headline:has-text('failed')", timeout=60_000)
    assert "--no-such-option" in seen.page.inner_text(".headline")
    assert running.job(number)["attempt"] == 1  # what cannot be carried out as written is not tried again
    assert seen.complaints == []
    seen.page.context.close()
