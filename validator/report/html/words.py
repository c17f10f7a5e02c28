"""The page's own words and signs for states and moments."""

from __future__ import annotations

from validator.report.html.states import State

#: Each state in a word.
STATES = {
    State.EQUAL: "equal",
    State.DIFFERENT: "different",
    State.WAIVED: "waived",
    State.UNEXERCISED: "not exercised",
    State.ABSENT: "absent",
}

#: What each state means, for the legend.
MEANINGS = {
    State.EQUAL: "the same bits",
    State.DIFFERENT: "other bits",
    State.WAIVED: "other bits, exactly as the policy tolerates",
    State.UNEXERCISED: "the same bits, but they never changed during the run: that proves nothing",
    State.ABSENT: "not there, or not compared there",
}

#: A sign beside the colour, so that colour alone says nothing.
SIGNS = {
    State.EQUAL: "=",
    State.DIFFERENT: "≠",
    State.WAIVED: "w",
    State.UNEXERCISED: "○",
    State.ABSENT: "",
}

#: Class names of the style sheet, which are the letters of the page's data too.
CLASSES = {
    State.EQUAL: "e",
    State.DIFFERENT: "d",
    State.WAIVED: "w",
    State.UNEXERCISED: "n",
    State.ABSENT: "a",
}


def moment_sign(moment: str) -> str:
    """``3`` for a step, ``↺3`` right after a restore, ``▸3`` before the first step after it."""
    phase, _, step = moment.partition(":")
    return {"setup": "↺", "entry": "▸"}.get(phase, "") + (step or moment)
