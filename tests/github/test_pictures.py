"""The summary of each verdict in a real browser: there is a picture, and what must be read first stands first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.github.pictures import all_reports, picture
from validator.report.summary import render_summary


@pytest.mark.parametrize("name", all_reports())
def test_what_is_read_in_ten_seconds_stands_first(name: str) -> None:
    report = all_reports()[name]
    summary = render_summary(report, "https://github.example/run")
    first = summary.splitlines()[0]
    assert f"<code>{report.verdict.value}</code>" in first or report.verdict.value.replace("_", "&#95;") in first
    places = [
        summary.find(words)
        for words in ("### First divergence", "### Environment difference", "### Policy changed here", "**Resume:**")
    ]
    found = [place for place in places if place >= 0]
    assert found == sorted(found)
    assert summary.find("**Reproduce:**") > max(found, default=0)
    assert "**Full report:** <https://github.example/run>" in summary


@pytest.mark.system
def test_every_verdict_has_a_picture(tmp_path: Path) -> None:
    for name, report in all_reports().items():
        png = picture(report, tmp_path, name).read_bytes()
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        assert len(png) > 20_000  # a blank page of that size has a tenth
