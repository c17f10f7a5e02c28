"""Who owns a path by a CODEOWNERS file: the last rule that matches counts, as GitHub has it."""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Where GitHub looks, in this order; the first that is there counts.
PLACES = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")

_WILD = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def owners(text: str, path: str) -> tuple[str, ...]:
    """Owners of ``path`` (no slash in front), as written: ``@user``, ``@organization/team`` or an address."""
    found: tuple[str, ...] = ()
    for pattern, named in _rules(text):
        if _matches(pattern, path):
            found = named
    return found


def _rules(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in text.splitlines():
        words = re.sub(r"(?<!\\)#.*", "", line).replace("\\ ", "\0").split()
        if words:
            yield words[0].replace("\0", " ").replace("\\#", "#"), tuple(words[1:])


def _matches(pattern: str, path: str) -> bool:
    """Gitignore's patterns, without negation and character ranges, which GitHub does not take either."""
    if pattern.startswith("!") or "[" in pattern:
        return False
    anchored = "/" in pattern.rstrip("/")
    folder = pattern.endswith("/")
    body = pattern.strip("/")
    parts = [_WILD.get(piece, re.escape(piece)) for piece in re.split(r"(\*\*/|/\*\*|\*\*|\*|\?)", body)]
    start = "" if anchored else "(?:.*/)?"
    # A pattern that ends in /* means the files of that folder, not those of folders below it.
    end = "/.*" if folder else "" if body.endswith("/*") else "(?:/.*)?"
    return re.fullmatch(start + "".join(parts) + end, path) is not None
