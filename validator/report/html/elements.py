"""Pieces of HTML. What comes from outside is text here and never markup: only this module puts angle brackets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

from validator.report.text import printable_lines

#: A piece of markup that is safe to stand in the page.
Html = NewType("Html", str)

NOTHING = Html("")


def text(content: object) -> Html:
    """Any text, escaped, with control and format characters written out."""
    written = str(content)
    if not (written.isascii() and written.isprintable()):
        written = printable_lines(written)
    return Html(escape(written, quote=True))


def join(parts: Iterable[Html], between: str = "") -> Html:
    """Pieces one after the other."""
    return Html(between.join(parts))


def tag(name: str, *content: Html, **attributes: object) -> Html:
    """An element. An attribute ``class_`` is ``class``, ``data_x`` is ``data-x``; ``None`` and ``False`` leave it out,
    ``True`` gives it no value.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{written}>{''.join(content)}</{name}>")


def code(content: object) -> Html:
    """Something that a person may want to copy exactly."""
    return tag("code", text(content))


def table(header: Sequence[Html], rows: Iterable[Sequence[Html]], caption: str, **attributes: object) -> Html:
    """A table that scrolls sideways where it is too wide; the first cell of each row heads it."""
    head = tag("thead", tag("tr", *(tag("th", cell, scope="col") for cell in header)))
    body = tag(
        "tbody",
        *(
            tag("tr", tag("th", row[0], scope="row"), *(tag("td", cell) for cell in row[1:]))
            for row in rows
        ),
    )  # fmt: skip
    whole = tag("table", tag("caption", text(caption)), head, body, **attributes)
    return tag("div", whole, class_="scroll", tabindex="0", role="group", aria_label=caption)


def details(summary: Html, *content: Html, **attributes: object) -> Html:
    """Something that opens."""
    return tag("details", tag("summary", summary), *content, **attributes)


def copyable(content: str, label: str) -> Html:
    """A block of text with a button that copies it."""
    block = tag("pre", tag("code", text(content)), tabindex="0", role="group", aria_label=label)
    return tag("div", block, tag("button", text("Copy"), type="button", class_="copy", aria_label=f"Copy {label}"),
               class_="copyable")  # fmt: skip


def section(identity: str, title: str, *content: Html) -> Html:
    """A part of the page with its heading; nothing where it has no content."""
    if not any(content):
        return NOTHING
    heading = tag("h2", text(title), id=f"{identity}-title")
    return tag("section", heading, *content, id=identity, aria_labelledby=f"{identity}-title")


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(value)}"'
