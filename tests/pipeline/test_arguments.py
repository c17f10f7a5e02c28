"""Splitting a pasted command line."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validator.errors import UsageError
from validator.pipeline.arguments import OWNED, Word, check, integer_option, split
from validator.pipeline.document import Place

PLACE = Place(Path("p.yaml"), 10, "computation.arguments")


def texts(text: str) -> list[str]:
    return [word.text for word in split(text, PLACE)]


def test_quotes_comments_joined_lines() -> None:
    text = "--a 1 \\\n  --b 'two words' # three\n--c=\"x # y\"'z' d#e \\# ''"
    assert texts(text) == ["--a", "1", "--b", "two words", "--c=x # yz", "d#e", "#", ""]


def test_words_know_their_line() -> None:
    assert split("--a\n# note\n--b \\\n 'c\nd' e", PLACE) == (
        Word("--a", 0),
        Word("--b", 2),
        Word("c\nd", 3),
        Word("e", 4),
    )


@settings(deadline=None)
@given(st.lists(st.text(max_size=12), max_size=6))
def test_what_a_shell_would_quote_comes_back(words: list[str]) -> None:
    assert texts(shlex.join(words)) == words


@settings(deadline=None)
@given(st.text(st.sampled_from("ab -='\"\\# \n"), max_size=30))
def test_as_shlex_splits_where_no_hash_is_inside_a_word(text: str) -> None:
    try:
        mine: list[str] | None = texts(text)
    except UsageError:
        mine = None
    if "#" not in text and "\\\n" not in text:
        try:
            expected: list[str] | None = shlex.split(text)
        except ValueError:
            expected = None
        assert mine == expected


@pytest.mark.parametrize("text", ["--a $HOME", "--a `date`", '--a "x$y"', "--a 'b", '--a "b', "--a b\\"])
def test_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^p\.yaml:10: computation\.arguments .*\.$"):
        texts(text)


def test_a_dollar_in_single_quotes_or_escaped_is_itself() -> None:
    assert texts("'$a' \\$b \"\\$c\"") == ["$a", "$b", "$c"]


@pytest.mark.parametrize("option", sorted(OWNED))
def test_options_that_the_product_sets(option: str) -> None:
    for text in (f"--x\n{option} 1", f"--x\n{option}=1"):
        with pytest.raises(UsageError, match=r"^p\.yaml:11: .*sets itself; (set \S+ instead|remove it)\.$"):
            check(split(text, PLACE), PLACE)


@pytest.mark.parametrize(
    "option", ["--save-wgrads-interval", "--exit-new", "--eval-global-batch-size", "--async-strategy"]
)
def test_families_that_the_product_sets(option: str) -> None:
    with pytest.raises(UsageError, match="sets itself"):
        check(split(f"{option} 1", PLACE), PLACE)


@pytest.mark.parametrize(
    "option", ["--ckpt-format", "--no-load-rng", "--no-save-rng", "--seq-length", "--train", "--use-mcore"]
)
def test_options_that_a_pipeline_may_give(option: str) -> None:
    check(split(f"{option} 1", PLACE), PLACE)


def test_values_are_no_options() -> None:
    check(split("--x save --y seed", PLACE), PLACE)


def test_the_last_value_of_an_option_counts() -> None:
    words = ["--a", "2", "--a=3", "--b", "x", "--c"]
    assert integer_option(words, "--a", 1) == 3
    assert integer_option(words, "--b", 7) == 7
    assert integer_option(words, "--c", 7) == 7
    assert integer_option(words, "--d", 9) == 9
