"""Rendered with cmark-gfm, which is GitHub's own, and with raw HTML let through, as before its sanitising."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import example, given

from tests.report.hostile import ATTACKS, hostile_text, poisoned, reports
from tests.report.samples import SAMPLES, changed, passing, resume_broken
from validator.report.markdown import render_markdown
from validator.report.markup import code, code_block, prose, table
from validator.report.model import EnvironmentDifferenceRow, Report
from validator.report.text import printable

ALLOWED = {
    *("h2", "h3", "p", "strong", "code", "pre", "ul", "li", "br", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Reader(HTMLParser):
    """Collects elements, text outside code, text inside code, comments."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.comments: list[str] = []
        self.text: list[str] = []
        self.outside: list[str] = []
        self._inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self._inside += tag in ("code", "pre")

    def handle_endtag(self, tag: str) -> None:
        self._inside -= tag in ("code", "pre")

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)
        self.text.append("\0")
        self.outside.append("\0")

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if not self._inside:
            self.outside.append(data)


def read(markdown: str) -> Reader:
    reader = Reader()
    reader.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE))
    reader.close()
    return reader


def seen(text: str) -> str:
    return " ".join(printable(text).split())


@given(reports())
def test_hostile_text_makes_no_element_no_attribute_no_mention(report: Report) -> None:
    reader = read(render_markdown(report))
    assert set(reader.tags) <= ALLOWED
    assert {name for name, _ in reader.attributes} <= {"lang"}
    assert {comment.strip() for comment in reader.comments} <= {""}
    assert re.search(r"@\w|#\d", "".join(reader.outside)) is None


@given(hostile_text)
@example("a_b_c _d_ __e__ 1. x")
@example("||")
@example("a\\|b")
def test_prose_and_code_are_read_as_they_were_written(text: str) -> None:
    for shown in (f"x {prose(text)}", f"**x** {code(text)}"):
        reader = read(shown)
        expected = seen(text)
        assert "".join(reader.text).replace("\0", "").strip() in {f"x {expected}".strip(), "x —"}
        assert set(reader.tags) <= {"p", "strong", "code"}


@given(hostile_text)
def test_a_cell_stays_one_cell(text: str) -> None:
    reader = read(table(("a", "b"), [(prose(text), code(text)), ("1", "2")]))
    assert reader.tags.count("td") == 4
    assert reader.tags.count("tr") == 3


@given(hostile_text)
def test_a_block_stays_one_block(text: str) -> None:
    reader = read(f"{code_block(text)}\n\nend")
    assert reader.tags == ["pre", "code", "p"]


@pytest.mark.parametrize("text", ATTACKS)
def test_no_link_comes_of_text(text: str) -> None:
    reader = read(f"{prose(text)}\n\n- {code(text)}")
    assert not {"a", "img", "script", "h1"} & set(reader.tags)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_verdict_leads(name: str) -> None:
    report = SAMPLES[name]()
    first, _, third = render_markdown(report).split("\n")[:3]
    assert first.startswith("## ")
    assert name.replace("_", " ") in first
    assert third == f"**{prose(report.sentence)}**"


def test_what_a_reviewer_needs_is_there() -> None:
    text = "".join(read(render_markdown(changed())).text)
    for part in ("6.238412857055664", "40c7a113", "ATEN_CPU_CAPABILITY", "avx2", "step 10", "50/62", "rank 1"):
        assert part in text


def test_the_waiver_is_there_to_copy() -> None:
    report = resume_broken()
    assert report.suggested_waivers.strip() in render_markdown(report)


def test_the_whole_fits_into_a_check_run() -> None:
    rows = tuple(
        EnvironmentDifferenceRow("arguments", "n" * 200, "x" * 9000, "y" * 9000, True, "claimed") for _ in range(999)
    )
    text = render_markdown(replace(passing(), environment_difference=rows))
    assert len(text) < 65_535
    assert "And 959 more in the JSON report." in text


def test_a_poisoned_sample_still_tells_its_outcome() -> None:
    assert "❌ fails" in render_markdown(poisoned(changed(), ATTACKS[0]))
