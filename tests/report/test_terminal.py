from __future__ import annotations

import io
import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given

from tests.report.hostile import reports
from tests.report.samples import SAMPLES, changed, error, passing, resume_broken
from validator.report.model import EnvironmentDifferenceRow, Report
from validator.report.style import Style, style_for
from validator.report.terminal import ENVIRONMENT_ROWS, render_terminal, show

PLAIN = Style(colour=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(report: Report, width: int = 100) -> list[str]:
    return render_terminal(report, PLAIN, width).split("\n")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_first_line_is_the_verdict_in_a_sentence(name: str) -> None:
    report = SAMPLES[name]()
    assert lines(report)[0] == f"{name.upper()}  {report.sentence}"
    assert lines(report)[1].endswith(f"exit {report.verdict.exit_code}")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_gate_has_one_line(name: str) -> None:
    report = SAMPLES[name]()
    for gate in report.gates:
        assert sum(gate.sentence in line for line in lines(report)) == 1


def test_a_metric_is_shown_with_values_bits_and_distance() -> None:
    text = render_terminal(changed(), PLAIN)
    assert "step 1, rank 0, metrics, lm_loss" in text
    assert "1 ULP apart" in text
    assert re.search(r"expected +6\.238412380218506 +bits 40c7a112", text)
    assert re.search(r"observed +6\.238412857055664 +bits 40c7a113", text)


def test_a_restore_is_told_in_words() -> None:
    text = render_terminal(resume_broken(), PLAIN)
    assert "right after the restore of step 3, rank 1, optimizer, decoder.layers.1.mixer.in_proj.weight.exp_avg" in text


def test_blocks_come_in_the_order_in_which_a_person_asks() -> None:
    text = render_terminal(resume_broken(), PLAIN)
    titles = [
        "RESUME_BROKEN",
        "Gates",
        "First divergence",
        "How it spread",
        "Waived",
        "Unused waivers",
        "Expired waivers",
    ]
    titles += ["To waive", "Reproduce", "Output"]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)


def test_what_can_change_bits_is_shown_first() -> None:
    text = render_terminal(changed(), PLAIN)
    assert text.index("default -> avx2") < text.index("4.3.1 -> 4.3.2") < text.index("6.1.0-18 -> absent")


def test_a_waiver_can_be_pasted_as_it_stands() -> None:
    report = resume_broken()
    assert report.suggested_waivers.strip("\n") in render_terminal(report, PLAIN)


def test_waived_defects_are_shown_with_rank_group_and_restore() -> None:
    text = render_terminal(passing(), PLAIN)
    assert "Waived: 1 known defect" in text
    assert text.count("resume: rng/expert-parallel-rng") == 1
    assert "rank 1, restore 3, setup to step 6, digest 0f6c1d22a9be4470b1c37f62d5a8e913" in text
    assert "rank 1, restore 6, setup to step 10, digest 77777777777777777777777777777777" in text


def test_logs_are_shown_when_something_went_wrong() -> None:
    assert "out/reference/launch.log" in render_terminal(error(), PLAIN)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_spread_fits_the_terminal(width: int) -> None:
    shown = lines(changed(), width)
    start = next(index for index, line in enumerate(shown) if line.startswith("How it spread"))
    table = shown[start + 1 : start + 8]
    assert table[0].split()[0] == "step:1"
    assert table[0].split()[-1] == "step:10"
    assert all(len(line) <= width for line in table)


def test_a_long_environment_difference_is_cut_and_says_so() -> None:
    rows = tuple(
        EnvironmentDifferenceRow("packages", f"p{i}", "1", "2", True, "claimed") for i in range(ENVIRONMENT_ROWS + 3)
    )
    text = render_terminal(replace(changed(), environment_difference=rows), PLAIN)
    assert "and 3 more" in text
    assert "p19" in text
    assert "p20" not in text


@given(reports())
def test_piped_output_has_no_control_character_whatever_the_report_holds(report: Report) -> None:
    text = render_terminal(report, style_for(io.StringIO()))
    assert {unicodedata.category(character) for character in set(text) - {"\n"}}.isdisjoint(
        {"Cc", "Cf", "Cs", "Zl", "Zp"}
    )


@given(reports())
def test_colour_is_all_that_a_terminal_gets_on_top(report: Report) -> None:
    coloured = render_terminal(report, Style(colour=True))
    assert re.sub(r"\x1b\[\d+m", "", coloured) == render_terminal(report, PLAIN)


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert style_for(Terminal()).colour
    assert not style_for(io.StringIO()).colour
    monkeypatch.setenv("NO_COLOR", "1")
    assert not style_for(Terminal()).colour
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not style_for(Terminal()).colour


def test_show_writes_to_the_stream() -> None:
    stream = io.StringIO()
    show(passing(), stream)
    assert stream.getvalue().startswith("PASS  ")
    assert stream.getvalue().endswith("Output     out\n")
