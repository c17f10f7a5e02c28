"""Megatron's command line in a pipeline: split as a shell does, checked for what the product sets itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from validator.pipeline.document import Place, shown

#: Option of Megatron's that the product sets itself -> what to change in the pipeline instead.
OWNED = {
    "--train-iters": "computation.steps",
    "--train-samples": "computation.steps",
    "--seed": "computation.seed",
    "--data-path": "computation.data",
    "--data-args-path": "computation.data",
    "--per-split-data-args-path": "computation.data",
    "--train-data-path": "computation.data",
    "--valid-data-path": "computation.data",
    "--test-data-path": "computation.data",
    "--mock-data": "computation.data",
    "--split": "computation.data",
    "--data-cache-path": "computation.data",
    "--spec": "computation.spec",
    "--save": "policy.resume.saves",
    "--use-persistent-ckpt-worker": "policy.resume.saves",
    "--load": "policy.resume.saves",
    "--ckpt-step": "policy.resume.saves",
    "--pretrained-checkpoint": "policy.resume.saves",
    "--non-persistent-save-interval": "policy.resume.saves",
    "--distributed-backend": "computation.device",
    "--deterministic-mode": "",
    "--log-interval": "",
    "--rerun-mode": "",
}

#: Owned by their beginning, so that a newer Megatron's further options of the kind are refused as well.
_OWNED_FAMILIES = {
    "--exit-": "policy.limits.launch_seconds",
    "--eval-": "",
    "--save-": "policy.resume.saves",
    "--async-": "policy.resume.saves",
}


@dataclass(frozen=True, slots=True)
class Word:
    """One word of the command line, and the line within the text (from 0) on which it begins."""

    text: str
    line: int


def split(text: str, place: Place) -> tuple[Word, ...]:
    """Split ``text`` into words as a shell does: quotes, backslashes, and ``#`` at a word's start for a comment.

    Nothing is expanded: a ``$`` or backtick outside single quotes, and a quote that stays open, raise ``UsageError``.
    """
    words: list[Word] = []
    position = _end(_BETWEEN, text, 0)
    while position < len(text):
        line = text.count("\n", 0, position)
        parts = []
        while part := _PART.match(text, position):
            parts.append(_content(part, _at(place, text.count("\n", 0, position))))
            position = part.end()
        if not text[position : position + 1].strip() and parts:
            words.append(Word("".join(parts), line))
        else:
            _at(place, line).refuse(f"has {shown(text[position])} that is never closed")
        position = _end(_BETWEEN, text, position)
    return tuple(words)


def check(words: Sequence[Word], place: Place) -> None:
    """Refuse what does not begin with an option, and what the product sets itself.

    Megatron's parser takes no abbreviations, so whole names are enough.
    """
    if words and not words[0].text.startswith("--"):
        _at(place, words[0].line).refuse(f"begins with {shown(words[0].text)}; accepted are options that begin with --")
    for word in words:
        if not word.text.startswith("--") or word.text == "--":
            continue
        option = word.text.partition("=")[0]
        family = next((key for beginning, key in _OWNED_FAMILIES.items() if option.startswith(beginning)), None)
        key = OWNED.get(option, family)
        if key is not None:
            instead = f"set {key} instead" if key else "remove it"
            _at(place, word.line).refuse(f"holds {shown(word.text)}, which the validator sets itself; {instead}")


def integer_option(words: Sequence[str], option: str, default: int) -> int:
    """The last value of an integer option in either spelling (``--x 2``, ``--x=2``); ``default`` where it has none."""
    value = default
    for index, word in enumerate(words):
        name, separator, text = word.partition("=")
        if name != option:
            continue
        if not separator:
            text = words[index + 1] if index + 1 < len(words) else ""
        if re.fullmatch(r"[1-9]\d{0,8}", text):
            value = int(text)
    return value


#: White space, joined lines and comments between two words.
_BETWEEN = re.compile(r"(?:\s|\\\n|#[^\n]*)*")

#: One piece of a word.
_PART = re.compile(
    r"""'(?P<single>[^']*)' | "(?P<double>(?:[^"\\]|\\.)*)" | \\(?P<escaped>.) | (?P<plain>[^\s'"\\]+)""",
    re.DOTALL | re.VERBOSE,
)


def _content(part: re.Match[str], place: Place) -> str:
    """What one piece of a word stands for."""
    kind, text = part.lastgroup, part[part.lastgroup or 0]
    if kind == "single":
        return text
    if kind == "escaped":
        return text.replace("\n", "")
    found = re.search(r"[$`]", re.sub(r"\\.", "", text, flags=re.DOTALL))
    if found:
        expansion = f"holds {shown(found[0])} outside single quotes"
        place.refuse(f"{expansion}; nothing is expanded here, so write the value itself")
    return re.sub(r'\\(["\\$`\n])', lambda match: match[1].replace("\n", ""), text) if kind == "double" else text


def _end(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _at(place: Place, line: int) -> Place:
    return Place(place.file, place.line + line, place.key)
