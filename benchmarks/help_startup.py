"""Seconds until ``validator --help`` has printed and ended, against a Python that does nothing. Target: 0.3 s."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TARGET_SECONDS = 0.3
RUNS = 15


def seconds_of(command: Sequence[str | Path]) -> float:
    """Wall-clock seconds of one run of ``command``; raises ``CalledProcessError`` where it fails."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return time.perf_counter() - begun


def measured(command: Sequence[str | Path], runs: int = RUNS) -> list[float]:
    """Seconds of ``runs`` runs, after one that is thrown away because it fills the file cache."""
    seconds_of(command)
    return [seconds_of(command) for _ in range(runs)]


def main() -> int:
    """Print both medians; the exit status is 1 where the target is missed."""
    python = Path(sys.executable)
    help_runs = measured([python.with_name("validator"), "--help"])
    bare_runs = measured([python, "-c", "pass"])
    median = statistics.median(help_runs)
    print(f"validator --help  median {median:.3f} s, worst {max(help_runs):.3f} s of {len(help_runs)} runs")
    print(f"python -c pass    median {statistics.median(bare_runs):.3f} s")
    print(f"target            {TARGET_SECONDS} s: {'held' if median <= TARGET_SECONDS else 'missed'}")
    return 0 if median <= TARGET_SECONDS else 1


if __name__ == "__main__":
    raise SystemExit(main())
