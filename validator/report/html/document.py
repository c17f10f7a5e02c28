"""One HTML document from sections, with the data that they open, and a policy that lets in nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from validator.report.html import mapview
from validator.report.html.elements import Html, join, tag, text
from validator.report.html.map import Map
from validator.report.html.tensors import Shelf


@dataclass(slots=True)
class Page:
    """Sections in their order, and the maps whose data the script needs."""

    title: str
    header: Html
    sections: list[tuple[str, str, Html]] = field(default_factory=list)
    maps: list[Map] = field(default_factory=list)
    shelf: Shelf = field(default_factory=Shelf)

    def add(self, identity: str, name: str, content: Html) -> None:
        """Add a section, unless it is empty; ``name`` stands in the navigation, where it is not empty."""
        if content:
            self.sections.append((identity, name, content))


def document(page: Page) -> str:
    """The whole document, which ends in a line feed."""
    style, script = asset("page.css"), asset("page.js")
    data: dict[str, Any] = {
        "maps": {drawn.identity: mapview.data(drawn) for drawn in page.maps},
        "leaves": mapview.shelf_data(page.shelf),
    }
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    links = (tag("li", tag("a", text(name), href=f"#{identity}")) for identity, name, _ in page.sections if name)
    theme = tag("button", text("Theme"), type="button", id="theme", aria_label="Theme: switch between light and dark")
    nav = tag("nav", tag("ul", *links), theme, aria_label="Sections")
    main = tag("main", page.header, nav, *(content for _, _, content in page.sections), id="top")
    head = join(
        (
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            Html('<meta name="referrer" content="no-referrer">'),
            tag("title", text(page.title)),
            Html('<link rel="icon" href="data:,">'),
            Html(f"<style>{style}</style>"),
        )
    )  # fmt: skip
    body = join(
        (main, Html(f'<script type="application/json" id="data">{_safe_json(data)}</script>'),
         Html(f"<script>{script}</script>"))
    )  # fmt: skip
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


@cache
def asset(name: str) -> str:
    """A file of this folder: the style sheet, the script."""
    return files("validator.report.html").joinpath(name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """How the page's policy names the one style sheet and the one script that it lets in."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _safe_json(data: object) -> str:
    """JSON that cannot end the element that it stands in."""
    written = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
