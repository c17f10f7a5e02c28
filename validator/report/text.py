"""Text of unknown origin, made harmless before it is shown. Tensor names, logs and reasons come from outside."""

from __future__ import annotations

import re
import unicodedata
from typing import TextIO

#: Unicode categories that move the cursor, reorder or hide text, or stand for nothing that can be shown.
_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

#: A line feed that is meant: what begins with ``::`` after one, and any blanks, is a command to GitHub's runner.
_LINE_FEED = re.compile(r"\n(?![^\S\n]*::)")

#: Characters of something foreign within a sentence.
_BRIEF = 200


def printable(text: str) -> str:
    r"""``text`` on one line with every control, format and unassigned character written as ``\x1b`` or ``\u202e``."""
    return "".join(_escaped(character) if _is_unprintable(character) else character for character in text)


def printable_lines(text: str) -> str:
    """Like :func:`printable`, but line feeds stay: for blocks that are meant to have several lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def printable_message(text: str) -> str:
    """Like :func:`printable_lines`, and no line after the first is a command to a runner of CI."""
    return "\n".join(map(printable, _LINE_FEED.split(text)))


def brief(value: object, limit: int = _BRIEF) -> str:
    """What code under test wrote, for a sentence: on one line, and its middle left out where it is long."""
    return printable(shortened(str(value), limit))


def shortened(text: str, limit: int) -> str:
    """``text`` in at most ``limit`` characters, its middle left out: both ends of a tensor's name tell something."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 2
    tail = limit - 1 - head
    return f"{text[:head]}…{text[len(text) - tail :]}"


def seconds_in_words(seconds: float) -> str:
    """``7.1 s``, ``1 min 04 s`` or ``2 h 05 min``."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def estimate_in_words(seconds: float) -> str:
    """``7 s`` or ``1 min 04 s``: as exact as a guess may look."""
    return f"{round(seconds)} s" if round(seconds) < 60 else seconds_in_words(seconds)


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """``1 leaf``, ``2 leaves``: the number with the form of the noun that goes with it."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def write_text(stream: TextIO, text: str) -> None:
    """Write and flush; what the stream's encoding lacks becomes an escape instead of an exception."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _is_unprintable(character: str) -> bool:
    return unicodedata.category(character) in _UNPRINTABLE


def _escaped(character: str) -> str:
    point = ord(character)
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
