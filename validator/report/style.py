"""Colour on a terminal that wants it, and nothing at all elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TextIO

_RED, _GREEN, _YELLOW, _BOLD, _DIM = 31, 32, 33, 1, 2


@dataclass(frozen=True, slots=True)
class Style:
    """Marks text with ANSI attributes, or leaves it as it is where ``colour`` is off."""

    colour: bool

    def good(self, text: str) -> str:
        return self._marked(text, _GREEN)

    def bad(self, text: str) -> str:
        return self._marked(text, _RED)

    def open(self, text: str) -> str:
        """Neither good nor bad: what could not be decided."""
        return self._marked(text, _YELLOW)

    def title(self, text: str) -> str:
        return self._marked(text, _BOLD)

    def quiet(self, text: str) -> str:
        return self._marked(text, _DIM)

    def _marked(self, text: str, code: int) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def style_for(stream: TextIO) -> Style:
    """Colour where ``stream`` is a terminal, unless ``NO_COLOR`` is set (no-color.org) or the terminal is ``dumb``."""
    return Style(stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb"))
