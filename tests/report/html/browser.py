"""A real Chromium that opens pages, lets nothing off the page, and remembers every complaint."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route, sync_playwright

_AXE = Path(__file__).parents[2] / "node" / "node_modules" / "axe-core" / "axe.min.js"

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser, ended at the end; fails with a sentence where it is not installed."""
    executable = shutil.which("chromium")
    assert executable is not None, "chromium is not installed; run scripts/install-system-packages"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """One page in one window: what it complained about, and what it asked for beyond itself."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def violations(self) -> list[str]:
        """What axe-core finds: rule, and the first element that breaks it."""
        assert _AXE.is_file(), f"{_AXE} is missing; run scripts/install-system-packages"
        self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']} ({len(each['nodes'])}): {node['html'][:200]} {node['failureSummary']}"
            for each in found["violations"]
            for node in each["nodes"][:1]
        ]


@contextmanager
def visit(
    browser: Browser, file: Path, *, scheme: str = "light", width: int = 1200, script: bool = True
) -> Iterator[Visit]:
    """Open a file; every request but for the file itself is refused and noted."""
    context = browser.new_context(
        color_scheme="dark" if scheme == "dark" else "light",
        viewport={"width": width, "height": 900},
        java_script_enabled=script,
    )
    try:
        seen = Visit(context.new_page())
        address = file.resolve().as_uri()

        def only_the_page(route: Route) -> None:
            if route.request.url.split("#")[0] == address:
                route.continue_()
            else:
                seen.requests.append(route.request.url)
                route.abort()

        context.route(lambda url: not url.startswith("data:"), only_the_page)
        seen.page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
        seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        seen.page.goto(address)
        yield seen
    finally:
        context.close()
