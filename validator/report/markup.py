"""Foreign text inside GitHub's Markdown: what it says is shown, what it would do is not done.

Every character that Markdown, HTML or one of GitHub's filters could act on becomes a character reference, which
CommonMark never reads as structure (its specification, "Entity and numeric character references"). ``@`` and ``#`` get
an empty comment behind them as well: the filters for mentions and issue references look at the rendered text, where a
reference alone would be undone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from validator.report.text import printable

#: What could act, wherever it stands.
_ALWAYS = r"[#$&*<>@\[\\\]^`{|}~]"

#: What acts only in some places: emphasis (``_`` not inside a word), links (``://``, ``www.``), emoji, issue references
#: (``GH-1``), and what opens a list, heading or code block at the start of a line.
_SOMEWHERE = (
    r"(?<![^\W_])_|_(?![^\W_])",
    r":(?! |$)",
    r"(?<=/)/",
    r"(?i:(?<=www)\.|(?<=gh)-)",
    r"(?<=\d)[.)](?= |$)",
    r"^[-+=.:]",
)

_ACTIVE = re.compile("|".join((_ALWAYS, *_SOMEWHERE)))

_BREAK = "<!-- -->"


def prose(text: str) -> str:
    """``text`` for a paragraph, list item or table cell: one line that reads as it is and does nothing."""
    return _ACTIVE.sub(_reference, " ".join(printable(text).split()))


def code(text: str) -> str:
    """``text`` in code type, for names, digests and values; empty text is an em dash.

    An HTML element and not backquotes, because a table splits its cells before it looks for those.
    """
    inside = prose(text)
    return f"<code>{inside}</code>" if inside else "—"


def code_block(text: str, language: str = "") -> str:
    """``text`` as a fenced block whose fence is longer than any run of backquotes within."""
    lines = [printable(line) for line in text.strip("\n").split("\n")]
    longest = max((len(run) for run in re.findall(r"`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join((fence + language, *lines, fence))


def table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _reference(match: re.Match[str]) -> str:
    character = match[0]
    return f"&#{ord(character)};{_BREAK if character in '@#' else ''}"
