"""A page of 1,024 ranks × 1,000 steps: small enough to send, and open at once."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from playwright.sync_api import Browser, expect

from tests.report import samples
from tests.report.html.browser import visit
from tests.report.html.large import write_many, write_rank
from validator.report.html import render_report
from validator.report.trajectories import Trajectories

pytestmark = [pytest.mark.system, pytest.mark.slow]

RANKS, STEPS = 1024, 1000
MOST_BYTES, MOST_SECONDS = 5_000_000, 2.0


@pytest.mark.timeout(280)
def test_large_trajectories_fold_into_a_small_page(browser: Browser, tmp_path: Path) -> None:
    own, other = write_rank(tmp_path / "own", STEPS, 0), write_rank(tmp_path / "other", STEPS, 1)
    shape = (STEPS, len(own.group_names))
    nothing = np.zeros(shape, np.bool_)

    def one_rank(rank: int) -> NDArray[np.bool_]:
        where = nothing.copy()
        where[749:, 4] = rank == 683
        return where

    def from_a_step(rank: int) -> NDArray[np.bool_]:
        return np.repeat(np.arange(STEPS)[:, None] >= 100, shape[1], axis=1)

    def anywhere(rank: int) -> NDArray[np.bool_]:
        return np.random.default_rng(rank).random(shape) < 0.02

    golden = write_many(tmp_path / "golden", RANKS, own, own, lambda _: nothing)
    spreads: dict[str, Callable[[int], NDArray[np.bool_]]] = {
        "one rank": one_rank, "from a step": from_a_step, "anywhere": anywhere,
    }  # fmt: skip
    for name, differs in spreads.items():
        observed = write_many(tmp_path / name, RANKS, own, other, differs)
        begin = time.perf_counter()
        content = render_report(samples.changed(), Trajectories(golden, None, observed, (golden,)))
        took = time.perf_counter() - begin
        page = tmp_path / f"{name}.html"
        page.write_text(content, encoding="utf-8")
        size = page.stat().st_size
        with visit(browser, page) as seen:
            opened = seen.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000
            assert seen.complaints == []
            print(f"{name}: made in {took:.1f} s, {size / 1e6:.2f} MB, opened in {opened:.2f} s")
            assert size < MOST_BYTES
            assert opened <= MOST_SECONDS
            if name == "one rank":
                seen.page.locator('table[data-map="golden"] .unfold').nth(4).click()
                rows = seen.page.locator('table[data-map="golden"] tr.ranks th')
                assert rows.all_inner_texts() == ["ranks 0–682, 684–1023", "rank 683"]
                cell = seen.page.locator('table[data-map="golden"] tr.ranks .go[aria-label$="different"]').first
                expect(cell).to_have_attribute("aria-label", re.compile(r", rank 683, steps 750 to \d+: different$"))
                cell.click()
                expect(seen.page.locator('[data-panel="golden"]')).to_contain_text("step 750, rank 683")
