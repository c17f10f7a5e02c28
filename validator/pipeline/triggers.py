"""What calls for a check of a pipeline: changed paths, new container images; and the runners that can launch it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

#: Where software is written down in most repositories.
DEFAULT_PATHS = (
    "containers/**", "constraints*.txt", "requirements*.txt", "requirements/**", "pyproject.toml", "*.lock",
    "third_party/**", ".gitmodules",
)  # fmt: skip

DEFAULT_RUNNER = ("self-hosted",)


@dataclass(frozen=True, slots=True)
class Triggers:
    """Of one pipeline. ``paths`` and ``images`` are patterns with ``*``, ``?`` and ``**`` (any folders).

    ``images`` are matched with an image's name without tag and digest; ``runner`` are the labels of the machines that
    have the pipeline's hardware. ``dockerfile`` is what the image is built from that the workflows launch it in; empty
    where they launch with wheels.
    """

    paths: tuple[str, ...] = DEFAULT_PATHS
    images: tuple[str, ...] = ()
    runner: tuple[str, ...] = DEFAULT_RUNNER
    dockerfile: str = ""

    def first_path(self, paths: Iterable[str]) -> str | None:
        """The first of ``paths`` that calls for a check."""
        return next((path for path in paths if any(matches(pattern, path) for pattern in self.paths)), None)

    def calls_for_image(self, image: str) -> bool:
        """Whether a new ``image`` (name, tag and digest as they come) calls for a check."""
        return any(matches(pattern, image_name(image)) for pattern in self.images)


def image_name(image: str) -> str:
    """``registry.example:5000/team/train`` of ``registry.example:5000/team/train:2026-11@sha256:…``."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    return head + slash + last.partition(":")[0]


def matches(pattern: str, path: str) -> bool:
    """``*`` and ``?`` stay within one folder, ``**`` takes any number of them; all of ``path`` must match."""
    return _compiled(pattern).fullmatch(path) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    words = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts), re.DOTALL)
