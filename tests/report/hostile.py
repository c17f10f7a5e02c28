"""Text that tries to do something where it is shown, and reports that carry it everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import cast

from hypothesis import strategies as st

from tests.report.samples import SAMPLES
from validator.report.model import Report

ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</code></td></details><h1>pass</h1>",
    "@octocat @org/team see #1 and NVIDIA/Megatron-LM#6858 and GH-12",
    "[click](https://evil.example) ![x](https://evil.example/x.png)",
    "https://evil.example www.evil.example someone@evil.example",
    "**bold** _em_ __strong__ ~~gone~~ `code` ``` $x$ | a | b |",
    "weight\n\n# heading\n\n- item\n1. item\n> quote\n---\n    code",
    "\x1b[2J\x1b[1;32mPASS\x1b[0m\r\x07\x08\x9b31m",
    "\u202egnp.exe\u2066 zero\u200bwidth\u2028line\ufeff\x00",
    "]]> <!-- --> <![CDATA[ &amp; &lt; &#64; \\| \\",
    "\ud800 lone surrogate \U000e0041 tag \uffff",
    "%s {0} ${HOME} $(id) :smile: ::error::injected",
)

#: Any text at all, mixed from characters that mean something somewhere.
hostile_text = st.one_of(
    st.sampled_from(ATTACKS),
    st.text(max_size=40),
    st.text(alphabet="<>&@#[]()!`*_~|\\:/.-+=$ \n\t\x1bwaGgHhwW1", max_size=40),
)


def poisoned(report: Report, text: str) -> Report:
    """The report with ``text`` in place of every string it holds (but the closed sets: verdict and outcomes)."""
    return cast("Report", _poison(report, text))


def reports() -> st.SearchStrategy[Report]:
    """Every sample, poisoned."""
    return st.builds(poisoned, st.sampled_from([make() for make in SAMPLES.values()]), hostile_text)


def _poison(value: object, text: str) -> object:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return text
    if isinstance(value, Mapping):
        return {f"{text}{index}": _poison(item, text) for index, item in enumerate(value.values())}
    if isinstance(value, tuple):
        return tuple(_poison(item, text) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{item.name: _poison(getattr(value, item.name), text) for item in fields(value)})
    return value
