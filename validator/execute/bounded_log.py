"""A log that hostile output can neither fill a disk with nor steer a terminal from."""

from __future__ import annotations

import re
from collections import deque
from pathlib import Path
from typing import final

#: How much of a log's beginning and end is kept, in bytes: a launch that prints all of Megatron's arguments takes
#: less than one percent of it.
HEAD_BYTES = 8 << 20
TAIL_BYTES = 4 << 20

#: Everything below a space but tab and line feed, the C1 controls, and what turns the direction of writing around.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


@final
class BoundedLog:
    r"""Takes output in pieces of any size and keeps its two ends; control characters become ``\x1b`` and the like.

    A line's carriage return is dropped. ``close`` writes what is still held; ``taken`` counts all bytes.
    """

    def __init__(self, path: Path, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._file = path.open("wb")
        self._left = head
        self._tail_bytes = tail
        self._tail: deque[bytes] = deque()
        self._held = 0
        self._dropped = 0
        self.taken = 0

    def take(self, data: bytes) -> None:
        """Take the next bytes. Raises ``OSError`` where the disk is full."""
        self.taken += len(data)
        if self._left:
            first, data = data[: self._left], data[self._left :]
            self._left -= len(first)
            self._file.write(harmless_bytes(first))
            self._file.flush()
        if not data:
            return
        self._tail.append(data)
        self._held += len(data)
        while self._tail and self._held - len(self._tail[0]) >= self._tail_bytes:
            gone = self._tail.popleft()
            self._held -= len(gone)
            self._dropped += len(gone)

    def close(self) -> None:
        """Write the end of what was taken, after a line that says how much is left out before it."""
        if self._file.closed:
            return
        with self._file:
            if self._dropped:
                self._file.write(f"\n[… {self._dropped} bytes are left out here …]\n".encode())
            for piece in self._tail:
                self._file.write(harmless_bytes(piece))
        self._tail.clear()


def harmless_bytes(data: bytes) -> bytes:
    r"""The text of ``data`` in UTF-8 with every control character but tab and line feed as ``\x1b``."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return _CONTROL.sub(lambda match: _escaped(ord(match[0])), text).encode()


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
