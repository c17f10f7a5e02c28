"""A bisection's answer, for a person at a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from validator.diagnose.bisect.packages import Change
from validator.diagnose.bisect.result import Bisected, Outcome
from validator.diagnose.bisect.search import Answer
from validator.report.json import plain
from validator.report.style import Style
from validator.report.text import counted, printable, seconds_in_words

SCHEMA = "validator/bisect"
VERSION = 1

_ANSWERS = {
    Answer.SAME: "as the first set",
    Answer.DIFFERS: "differs",
    Answer.UNRESOLVED: "not launched",
}


def render_terminal(found: Bisected, style: Style) -> str:
    """Text that ends in a line feed: the answer first, then where, then how it was found."""
    blocks = [list(block) for block in (_headline(found, style), _place(found, style), _tests(found, style))]
    blocks.append(list(_closing(found)))
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def render_json(found: Bisected) -> str:
    """The whole answer as JSON."""
    content = {
        "schema": SCHEMA,
        "version": VERSION,
        "outcome": str(found.outcome),
        "exit_code": found.outcome.exit_code,
        "sentence": found.sentence,
        "pipeline": found.pipeline,
        "hardware_class": found.hardware_class,
        "before": found.before,
        "after": found.after,
        "changes": [_change(change) for change in found.changes],
        "culprits": [_change(change) for change in found.culprits],
        "divergence": plain(found.divergence),
        "localisation": plain(found.localisation),
        "tests": plain(found.tests),
        "launches": found.launches,
        "seconds": round(found.seconds, 3),
        "remarks": list(found.remarks),
        "reproduce": found.reproduce,
        "out": found.out,
    }
    return json.dumps(content, indent=2) + "\n"


def _change(change: Change) -> dict[str, object]:
    return {
        "name": change.name,
        "before": None if change.before is None else change.before.version,
        "after": None if change.after is None else change.after.version,
        "sentence": change.words,
    }


def _headline(found: Bisected, style: Style) -> Iterator[str]:
    name = found.outcome.value.upper()
    toned = {Outcome.FOUND: style.good, Outcome.AGREE: style.open, Outcome.UNKNOWN: style.bad}[found.outcome](name)
    yield f"{style.title(toned)}  {printable(found.sentence)}"
    about = [f"pipeline {found.pipeline}", f"hardware class {found.hardware_class}"]
    spent = f"{counted(found.launches, 'launch', 'launches')} in {seconds_in_words(found.seconds)}"
    yield style.quiet(", ".join([*about, spent, f"exit {found.outcome.exit_code}"]))


def _place(found: Bisected, style: Style) -> Iterator[str]:
    if found.divergence is None:
        return
    yield style.title("Where")
    yield f"  first divergence  {printable(found.divergence.sentence)}"
    if found.localisation is not None:
        yield f"  module            {printable(found.localisation.sentence)}"


def _tests(found: Bisected, style: Style) -> Iterator[str]:
    if not found.tests:
        return
    yield style.title("Tests")
    names = max(len(test.name) for test in found.tests)
    for test in found.tests:
        words = _ANSWERS[test.answer]
        tone = {Answer.SAME: style.good, Answer.DIFFERS: style.bad}.get(test.answer, style.open)
        made = counted(len(test.changes), "change") + (
            f": {printable(', '.join(test.changes))}" if test.changes else ""
        )
        yield f"  {test.name:<{names}}  {tone(words)}{' ' * (16 - len(words))}  {made}"
        if test.answer is Answer.UNRESOLVED:
            yield style.quiet(f"  {'':<{names}}  {'':16}  {printable(test.sentence)}")


def _closing(found: Bisected) -> Iterator[str]:
    yield from (printable(remark) for remark in found.remarks)
    if found.reproduce:
        yield f"Reproduce  {printable(found.reproduce)}"
    yield f"Output     {printable(found.out)}"
