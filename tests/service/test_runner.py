"""What a runner tells of the check that it carries out."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from validator.service.engines.runner import _follow
from validator.service.engines.work import Work

SAYS_TWO_LINES_THEN_NOTHING = """
import sys, time
print("[1/4] completed after 16 s", file=sys.stderr, flush=True)
print("[2/4] starts fresh, saves step 3", file=sys.stderr, flush=True)
time.sleep(4)
print("the end", file=sys.stderr)
sys.exit(4)
"""


class Heard:
    """In the pusher's place: remembers when it was told what."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.lines: list[tuple[str, float]] = []

    def progress(self, line: str) -> None:
        self.lines.append((line, time.monotonic() - self.started))


def test_the_newest_line_is_told_while_the_check_is_silent(tmp_path: Path) -> None:
    work, heard = Work(tmp_path), Heard()
    code, last = _follow(work, [sys.executable, "-c", SAYS_TWO_LINES_THEN_NOTHING], tmp_path, heard)  # type: ignore[arg-type]
    assert (code, last) == (4, "the end")
    told = [line for line, _ in heard.lines]
    assert told[:2] == ["[1/4] completed after 16 s", "[2/4] starts fresh, saves step 3"]
