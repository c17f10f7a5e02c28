"""What a command says on the terminal when it fails, whatever code under test put into the sentence."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.project import Project
from tests.report.hostile import hostile_text
from validator import cli
from validator.errors import LaunchError
from validator.report.text import brief, printable_message


def failing(sentence: str) -> Callable[[argparse.Namespace], int]:
    def command(_: argparse.Namespace) -> int:
        """Fail."""
        raise LaunchError(sentence)

    return command


def test_an_error_cannot_act_on_a_terminal_or_a_runner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = "no \x1b[32mpass\x1b[0m \ud800\n ::error::injected\n  waivers:\n  - leaf: a"
    monkeypatch.setitem(cli.COMMANDS, "faults", failing(sentence))
    assert cli.main(["faults"]) == 3
    assert capsys.readouterr().err == (
        "validator: no \\x1b[32mpass\\x1b[0m \\ud800\\x0a ::error::injected\n  waivers:\n  - leaf: a\n"
    )


@given(st.lists(hostile_text).map("\n".join))
def test_no_line_of_a_message_is_a_command(text: str) -> None:
    _, *rest = printable_message(text).split("\n")
    assert not any(line.lstrip().startswith("::") for line in rest)


@given(st.integers() | st.none() | hostile_text | st.lists(hostile_text))
def test_what_is_brief_is_short_and_on_one_line(value: object) -> None:
    assert "\n" not in brief(value, 20)
    assert len(brief(value, 20)) <= 20 * 10
    assert len(brief("x" * 10**6)) == 200


@pytest.mark.parametrize("command", ["record", "golden record"])
def test_a_blind_recorder_is_told_in_one_harmless_line(project: Project, tmp_path: Path, command: str) -> None:
    name = "weight\n::error::injected\x1b[2J" + "x" * 10_000
    project.double.misbehave(every={"unmapped": [name]})
    python = ("--python", str(project.double.python))
    if command == "record":
        ran = project.run("record", "tiny", *python, "--out", str(tmp_path / "kept"))
    else:
        ran = project.record_golden()
    assert ran.code == 3
    (line,) = [line for line in ran.err.splitlines() if "weight" in line]
    assert line.startswith("validator: The recorder is blind: rank 0: no leaf covers the tensor weight\\x0a::error::")
    assert "\\x1b[2J" in line
    assert len(line) < 500
