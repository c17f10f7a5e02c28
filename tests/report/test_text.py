from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.hostile import hostile_text
from validator.report.text import counted, printable, printable_lines, seconds_in_words, shortened, write_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("layers.0.weight", "layers.0.weight"),
        ("−0.0 × µ …", "−0.0 × µ …"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"),
        ("\u202egnp", "\\u202egnp"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_unprintable_characters_become_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(hostile_text)
def test_nothing_that_acts_survives(text: str) -> None:
    assert not {unicodedata.category(character)[0] for character in printable(text)} & {"C"}
    assert "\u2028" not in printable(text)
    assert printable_lines(text).count("\n") == text.count("\n")


@given(st.text(max_size=80), st.integers(3, 40))
def test_shortened_text_keeps_both_ends(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) == min(len(text), limit)
    assert short[0:1] == text[0:1]
    assert short[-1:] == text[-1:]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (59.97, "1 min 00 s"),
        (60, "1 min 00 s"),
        (119.7, "2 min 00 s"),
        (3600, "1 h 00 min"),
        (7500, "2 h 05 min"),
    ],
)
def test_seconds_in_words(seconds: float, words: str) -> None:
    assert seconds_in_words(seconds) == words


def test_counted() -> None:
    assert (counted(1, "leaf", "leaves"), counted(0, "leaf", "leaves"), counted(2, "ULP")) == (
        "1 leaf",
        "0 leaves",
        "2 ULPs",
    )


def test_a_stream_that_lacks_a_character_gets_an_escape() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write_text(stream, "− done\n")
    assert raw.getvalue() == b"\\u2212 done\n"
