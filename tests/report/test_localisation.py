"""Where in the code the bits part, in every form of the report."""

from __future__ import annotations

import json
from dataclasses import replace
from html import unescape

import pytest

from tests.report.samples import LOCALISATION, changed, nondeterministic, passing
from validator.report.html import render_report
from validator.report.json import render_json
from validator.report.junit import render_junit
from validator.report.markdown import render_markdown
from validator.report.model import Localisation, LocalisationOutcome, Report
from validator.report.reading import from_document
from validator.report.style import Style
from validator.report.summary import render_summary
from validator.report.terminal import render_terminal

MODULE = "decoder.layers.1.mlp.router (TopKRouter)"
CODE = "megatron/core/transformer/moe/router.py:840"


def terminal(report: Report) -> str:
    return render_terminal(report, Style(colour=False))


def with_localisation(found: Localisation) -> Report:
    report = changed()
    return replace(report, gates=(replace(report.gates[0], localisation=found), *report.gates[1:]))


@pytest.mark.parametrize("render", [terminal, render_markdown, render_summary, render_junit, render_report])
def test_module_class_file_and_line_are_in_every_form(render: object) -> None:
    text = unescape(render(changed()))  # type: ignore[operator]
    assert MODULE in text
    assert CODE in text


def test_the_terminal_says_it_after_both_values() -> None:
    lines = terminal(changed()).splitlines()
    at = lines.index("Where in the code")
    assert lines[at + 1 : at + 6] == [
        f"  module    {MODULE}",
        f"  code      {CODE}",
        f"  found     {LOCALISATION.sentence}",
        "  expected  c77f1f246c8ce037, output 0",
        "  observed  7a26f3b3d5e94125",
    ]
    assert (
        lines.index("First divergence (golden)")
        < at
        < lines.index("How it spread (leaves that differ / leaves of the group, all ranks)")
    )


@pytest.mark.parametrize("render", [render_markdown, render_summary])
def test_markdown_has_it_between_the_divergence_and_its_spread(render: object) -> None:
    text = unescape(render(changed()))  # type: ignore[operator]
    order = [text.index(words) for words in ("6.238412857055664", CODE, "Leaves that differ")]
    assert order == sorted(order)


def test_json_has_both_sides() -> None:
    found = json.loads(render_json(changed()))
    assert found["localisation"] == found["gates"][0]["localisation"]
    place = found["localisation"]
    assert (place["outcome"], place["module"], place["module_class"]) == (
        "module", "decoder.layers.1.mlp.router", "TopKRouter"
    )  # fmt: skip
    assert (place["file"], place["line"]) == ("megatron/core/transformer/moe/router.py", 840)
    assert (place["step"], place["rank"], place["micro_batch"], place["phase"]) == (1, 0, 0, "forward")
    assert place["outputs"][0] == {
        "name": "output 0", "expected": "c77f1f246c8ce037", "observed": "7a26f3b3d5e94125"
    }  # fmt: skip
    assert json.loads(render_json(passing()))["localisation"] is None


def test_a_report_reads_back_with_it_and_an_older_one_without() -> None:
    document = json.loads(render_json(changed()))
    assert from_document(document, "report").localisation == LOCALISATION
    del document["localisation"]
    for gate in document["gates"]:
        del gate["localisation"]
    assert from_document(document, "report").localisation is None


def test_the_page_shows_both_sides_and_how_it_goes_on() -> None:
    page = render_report(changed())
    section = page[page.index('<section id="module"') :]
    section = section[: section.index("</section>")]
    for text in ("What it comes to: what differs", "c77f1f246c8ce037", "7a26f3b3d5e94125", "2 values the same"):
        assert text in section
    assert "decoder.layers.1.mlp, all_to_all_single" in section


def test_of_several_attempts_it_says_how_many_showed_it() -> None:
    assert "Seen in 2 of 3 pairs of launches." in terminal(nondeterministic())
    assert "pairs of launches" not in terminal(changed())


@pytest.mark.parametrize(
    "outcome", [LocalisationOutcome.UNKNOWN, LocalisationOutcome.VANISHED, LocalisationOutcome.BEFORE_STEP_1]
)
def test_without_a_module_the_sentence_stands_alone(outcome: LocalisationOutcome) -> None:
    report = with_localisation(Localisation(outcome, "It could not be said.", 4))
    lines = terminal(report).splitlines()
    assert lines[lines.index("Where in the code") + 1] == "  found     It could not be said."
    assert "**Where in the code:** It could not be said" in render_markdown(report)
    assert "It could not be said." in render_report(report)
