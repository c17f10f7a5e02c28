"""CODEOWNERS as GitHub reads it."""

from __future__ import annotations

import pytest

from validator.service.jobs.owners import owners

PATH = "golden/tiny/golden.json"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("* @a", ("@a",)),
        ("* @a\n/golden/ @b", ("@b",)),
        ("/golden/ @b\n* @a", ("@a",)),  # the last rule that matches
        ("golden/ @b", ("@b",)),
        ("/golden @b", ("@b",)),
        ("/golden/* @b", ()),  # files of that folder only
        ("/golden/** @b", ("@b",)),
        ("/golden/tiny/ @b @c/d", ("@b", "@c/d")),
        ("/golden/other/ @b", ()),
        ("**/golden.json @b", ("@b",)),
        ("golden.json @b", ("@b",)),
        ("*.json @b", ("@b",)),
        ("/*.json @b", ()),
        ("* @a\n/golden/", ()),  # a rule without owners takes them away
        ("# /golden/ @b\n* @a # everyone", ("@a",)),
        ("/gold @b", ()),
        ("!/golden/ @b", ()),
        ("/g?lden/ @b", ("@b",)),
    ],
)
def test_the_last_rule_that_matches_counts(text: str, found: tuple[str, ...]) -> None:
    assert owners(text, PATH) == found
