"""What a result may have at most. Whatever is larger is refused."""

from __future__ import annotations

REPORT = "report.json"

#: Files, bytes in all once unpacked, bytes of the report, and parts of a path.
MOST_FILES = 10_000
MOST_BYTES = 4 << 30
MOST_REPORT_BYTES = 16 << 20
MOST_PARTS = 12
