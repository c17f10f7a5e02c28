"""The binary ``tree`` of a sealed trajectory: an index of digests and places, so that opening needs no text.

Three sections of rows of 32 bytes, little-endian, one after the other:

- rank rows ``[ranks, moments]``: digest of the rank's moment; where its lines are in the rank's text
- group rows ``[ranks, moments, groups]``: digest of the group; where its leaves are; its table, or ``ABSENT``
- table rows ``[tables]``: digest over the table's lines; rank and place of its first line
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from validator.errors import TrajectoryError

ABSENT = 0xFFFFFFFF

RANK_ROW = np.dtype([("digest", "<u8", (2,)), ("text_at", "<u8"), ("text_bytes", "<u4"), ("unused", "<u4")])
GROUP_ROW = np.dtype([("digest", "<u8", (2,)), ("leaves_at", "<u8"), ("table", "<u4"), ("leaves", "<u4")])
TABLE_ROW = np.dtype([("digest", "<u8", (2,)), ("text_at", "<u8"), ("rank", "<u4"), ("leaves", "<u4")])
ROW_BYTES = 32

type Rows = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Tree:
    """Reads rows of a tree file by place; holds nothing in memory. All indices are positions, not rank numbers."""

    path: Path
    ranks: int
    moments: int
    groups: int
    tables: int

    @property
    def size(self) -> int:
        """Bytes that the file must have."""
        return ROW_BYTES * (self.ranks * self.moments * (1 + self.groups) + self.tables)

    def rank_rows(self) -> Rows:
        """All rank rows, ``[ranks, moments]``: 32 MB for 1,024 ranks and 1,000 moments."""
        return self._read(0, RANK_ROW, (self.ranks, self.moments))

    def rank_row(self, rank: int, moment: int) -> Rows:
        """One rank row, ``[1]``."""
        return self._read(rank * self.moments + moment, RANK_ROW, (1,))

    def group_rows(self, rank: int) -> Rows:
        """All group rows of one rank, ``[moments, groups]``."""
        return self._read(self._group_base(rank, 0), GROUP_ROW, (self.moments, self.groups))

    def group_rows_at(self, rank: int, moment: int) -> Rows:
        """Group rows of one rank at one moment, ``[groups]``."""
        return self._read(self._group_base(rank, moment), GROUP_ROW, (self.groups,))

    def table_rows(self) -> Rows:
        """All table rows, ``[tables]``."""
        return self._read(self._group_base(self.ranks, 0), TABLE_ROW, (self.tables,))

    def _group_base(self, rank: int, moment: int) -> int:
        return self.ranks * self.moments + (rank * self.moments + moment) * self.groups

    def _read(self, row: int, dtype: np.dtype[np.void], shape: tuple[int, ...]) -> Rows:
        count = int(np.prod(shape))
        with open(self.path, "rb", buffering=0) as file:
            data = os.pread(file.fileno(), count * ROW_BYTES, row * ROW_BYTES)
        if len(data) != count * ROW_BYTES:
            raise TrajectoryError(f"{self.path} is truncated: it ends before row {row + count}")
        return np.frombuffer(data, dtype).reshape(shape)


def digest_words(digest: bytes) -> tuple[int, int]:
    """A 16-byte digest as the two words that a row holds."""
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")
