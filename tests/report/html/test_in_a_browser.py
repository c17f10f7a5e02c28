"""The report page in a real Chromium: what a person does with it, by mouse, by keyboard, and without script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.report import samples
from tests.report.html.browser import visit
from tests.report.html.results import VERDICTS, Results
from validator.report.html import render_report

pytestmark = pytest.mark.system

HEADLINES = {
    "pass": "pass tiny",
    "changed": "changed tiny",
    "nondeterministic": "nondeterministic tiny",
    "resume_broken": "resume broken tiny",
    "no_baseline": "no baseline tiny",
    "error": "error tiny",
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_is_accessible_silent_and_asks_for_nothing(
    browser: Browser, results: Results, verdict: str, scheme: str
) -> None:
    with visit(browser, results.page(verdict), scheme=scheme) as seen:
        expect(seen.page.locator("h1")).to_have_text(HEADLINES[verdict])
        for summary in seen.page.locator("summary").all():
            summary.click()
        opener = seen.page.locator("button.open").first
        if opener.count():
            opener.click()
        assert seen.violations() == []
        assert seen.complaints == []
        assert seen.requests == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_without_trajectories_is_accessible_too(browser: Browser, tmp_path: Path, scheme: str) -> None:
    for name, sample in samples.SAMPLES.items():
        file = tmp_path / f"{name}.html"
        file.write_text(render_report(sample()), encoding="utf-8")
        with visit(browser, file, scheme=scheme) as seen:
            assert seen.violations() == []
            assert seen.complaints == []


def test_from_the_verdict_to_the_tensor(browser: Browser, results: Results) -> None:
    with visit(browser, results.page("resume_broken")) as seen:
        page = seen.page
        page.get_by_role("link", name="First divergence").click()
        page.get_by_role("button", name="Show it on the map").click()
        panel = page.locator('[data-panel="resume"]')
        expect(panel.locator("h3")).to_have_text(
            "optimizer, right after the restore of step 3, against the uninterrupted launch"
        )
        expect(panel.locator("h3")).to_be_focused()
        first = panel.locator("tbody tr").first
        expect(first.locator("th")).to_have_text("step")
        digests = [cell.inner_text() for cell in first.locator("td code").all()[1:3]]
        assert all(re.fullmatch("[0-9a-f]{32}", digest) for digest in digests)
        assert digests[0] != digests[1]
        assert page.locator("#divergence tbody code").all_inner_texts() == digests


def test_the_resume_chain_leads_to_the_map(browser: Browser, results: Results) -> None:
    with visit(browser, results.page("resume_broken")) as seen:
        row = seen.page.locator("#resume tbody tr").filter(has_text="resume-2")
        expect(row).to_contain_text("restores step 3")
        row.get_by_role("button", name="right after the restore of step 3", exact=True).click()
        expect(seen.page.locator('[data-panel="resume"] h3')).to_contain_text("optimizer, right after the restore")
        assert seen.page.locator("#resume svg.timeline").get_attribute("aria-label") == (
            "Resume chain of 3 launches over 9 steps; the worst that it holds is different."
        )


def test_the_keyboard_alone_reaches_a_tensor_and_returns(browser: Browser, results: Results) -> None:
    with visit(browser, results.page("changed")) as seen:
        page = seen.page
        _tab_until(page, '[role="tab"][aria-selected="true"]')
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.textContent") == "Repeated"
        page.keyboard.press("ArrowLeft")
        assert page.evaluate("document.activeElement.textContent") == "Against the golden"
        _tab_until(page, ".go")
        assert _focused(page) == "metrics, step 1: different"  # the first that differs
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert _focused(page) == "batch, step 1: equal"
        page.keyboard.press("Control+End")
        assert _focused(page) == "schedule, step 9: equal"
        page.keyboard.press("Control+Home")
        for _ in range(5):
            page.keyboard.press("ArrowDown")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert _focused(page) == "optimizer, step 4: different"
        page.keyboard.press("Enter")
        heading = page.locator('[data-panel="golden"] h3')
        expect(heading).to_have_text("optimizer, step 4, against the golden")
        expect(heading).to_be_focused()
        expect(page.locator('[data-panel="golden"]')).to_contain_text("1 of 3 leaves differ")
        page.keyboard.press("Escape")
        assert _focused(page) == "optimizer, step 4: different"
        # Its ranks.
        page.locator('table[data-map="golden"] .unfold[data-group="5"]').focus()
        page.keyboard.press("Enter")
        expect(page.locator('table[data-map="golden"] tr.ranks')).to_have_count(2)
        page.locator('table[data-map="golden"] tr.ranks .go').first.focus()
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert _focused(page) == "optimizer, rank 0, step 4: different"
        page.keyboard.press("Enter")
        expect(page.locator('[data-panel="golden"] p').first).to_have_text("different rank 0")


def test_metrics_have_both_curves_and_their_distance(browser: Browser, results: Results) -> None:
    with visit(browser, results.page("changed")) as seen:
        figure = seen.page.locator("figure").filter(has_text="lm loss").first
        expect(figure.locator("figcaption")).to_contain_text("differs from step 1 on, at most")
        assert figure.locator("polyline").count() == 2
        assert figure.locator("rect.bar").count() == 9
        figure.locator("summary").click()
        cells = figure.locator("tbody tr").first.locator("td").all_inner_texts()
        golden, observed = (float(cells[at]) for at in (0, 2))
        assert observed == pytest.approx(golden * 1.0001, rel=1e-6)
        assert int(cells[4].replace(",", "")) == abs(int(cells[3], 16) - int(cells[1], 16))


def test_everything_can_be_copied_as_text(browser: Browser, results: Results) -> None:
    with visit(browser, results.page("changed")) as seen:
        seen.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        seen.page.get_by_text("Everything as Markdown").click()
        seen.page.get_by_role("button", name="Copy the report as Markdown").click()
        expect(seen.page.get_by_role("button", name="Copy the report as Markdown")).to_have_text("Copied")
        assert seen.page.evaluate("navigator.clipboard.readText()").startswith("## ❌ changed: tiny")
        seen.page.get_by_role("button", name="Show it on the map").click()
        seen.page.locator(".panel .head button", has_text="Copy").click()
        copied = seen.page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("metrics, step 1, against the golden\n")
        assert "lm loss\tfloat32[]\t" in copied


@pytest.mark.parametrize("verdict", ["changed", "resume_broken"])
def test_a_phone_needs_no_sideways_scrolling(browser: Browser, results: Results, verdict: str) -> None:
    with visit(browser, results.page(verdict), width=390) as seen:
        seen.page.get_by_role("button", name="Show it on the map").click()
        assert seen.page.evaluate("document.documentElement.scrollWidth") == 390
        assert seen.violations() == []


def test_without_script_the_map_and_the_first_divergence_are_there(browser: Browser, results: Results) -> None:
    with visit(browser, results.page("changed"), script=False) as seen:
        expect(seen.page.locator("#divergence")).to_contain_text("lm loss")
        expect(seen.page.locator('table[data-map="golden"]')).to_be_visible()
        expect(seen.page.locator('table[data-map="repeat-1"]')).to_be_visible()
        expect(seen.page.get_by_role("button", name="Show it on the map")).to_be_hidden()


def test_a_person_may_choose_the_theme(browser: Browser, results: Results) -> None:
    with visit(browser, results.page("pass"), scheme="light") as seen:
        ground = "getComputedStyle(document.body).backgroundColor"
        assert seen.page.evaluate(ground) == "rgb(255, 255, 255)"
        seen.page.get_by_role("button", name="Theme: switch between light and dark").click()
        assert seen.page.evaluate(ground) == "rgb(18, 21, 26)"
        assert seen.violations() == []


def test_it_prints_with_every_map(browser: Browser, results: Results, tmp_path: Path) -> None:
    with visit(browser, results.page("changed"), scheme="dark") as seen:
        seen.page.emulate_media(media="print", color_scheme="dark")
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        for identity in ("golden", "repeat-1"):
            expect(seen.page.locator(f'table[data-map="{identity}"]')).to_be_visible()
        expect(seen.page.locator("nav")).to_be_hidden()
        assert seen.page.pdf(path=tmp_path / "page.pdf").startswith(b"%PDF")


def test_two_trajectories_have_a_page_too(browser: Browser, results: Results) -> None:
    page = results.comparison()
    with visit(browser, page) as seen:
        expect(seen.page.locator("h1 .badge")).to_have_text("different")
        seen.page.get_by_role("button", name="Show it on the map").click()
        expect(seen.page.locator(".panel h3")).to_contain_text("metrics, step 1")
        assert seen.violations() == []
        assert (seen.complaints, seen.requests) == ([], [])


def _tab_until(page: Page, selector: str) -> None:
    """Press Tab until an element that matches has the focus."""
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"no {selector} is reached by Tab")


def _focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.getAttribute('aria-label')"))
