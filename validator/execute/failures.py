"""From a failed launch's log to one sentence. The log comes from the code under test: text to look at, never to
trust.
"""

from __future__ import annotations

import re
import signal
from pathlib import Path

from validator.report.text import shortened

#: How much of a log's end is read, in bytes.
_TAIL = 256 * 1024

#: How much of a launch's own words a clause quotes, in characters.
_QUOTED = 300

# Each takes time in proportion to the text's length, whatever the text is.
_OWN = re.compile(r"^(?:\[?[\w:.\-/]*\]?:?[ \t]*)?validator: (?P<sentence>.+)$", re.MULTILINE)
_PACKAGE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]{1,200})'")
_FULL = re.compile(r"No space left on device|\[Errno 28\]|\[Errno 27\]|File too large|Disk quota exceeded")
_MEMORY = re.compile(r"out of memory|OutOfMemoryError|MemoryError|Cannot allocate memory", re.IGNORECASE)
_PROCESSES = re.compile(r"\[Errno 11\]|Resource temporarily unavailable|can't start new thread")
_RANK = re.compile(r"exitcode: (?P<code>-?\d{1,9})\) local_rank: (?P<rank>\d{1,9})\b")
_ERROR = re.compile(r"^(?:\[\w+\]:[ \t]*)?(?P<error>[\w.]*(?:Error|Exception|Interrupt)(?:: .*)?)$", re.MULTILINE)

#: Errors that only say that another process failed.
_SECONDARY = (
    "ChildFailedError",
    "SignalException",
    "Connection closed by peer",
    "Connection reset by peer",
    "DistBackendError",
)


def read_tail(log: Path) -> str:
    """The end of a log as text; empty where there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def explain(log: Path, code: int, python: Path, processes: int | None = None) -> str:
    """One clause, without a full stop, on why a launch ended with exit code ``code``, in the order of how much it
    tells. ``processes`` is how many it was allowed, where something held it to that.
    """
    text = read_tail(log)
    sentences = (match["sentence"].strip().rstrip(".") for match in _OWN.finditer(text))
    if own := [sentence for sentence in sentences if sentence]:
        return shortened(own[-1], _QUOTED)
    if _FULL.search(text):
        return "no space was left on the device that it wrote to"
    if package := _PACKAGE.search(text):
        kind = "module" if "." in package["name"] else "package"  # of a package that is there, a part may be missing
        return f"the environment of {python} lacks the Python {kind} {package['name']!r}"
    if processes is not None and _PROCESSES.search(text):
        return f"it wanted more than {processes} processes and threads (policy.limits.processes)"
    if killed := _killed_rank(text):
        return killed
    if _MEMORY.search(text):
        return "it ran out of memory"
    if error := _first_error(text):
        return error
    return f"it exited with code {code}"


def _killed_rank(text: str) -> str | None:
    """The rank that a signal ended, as torchrun reports it (exit code −9 for SIGKILL)."""
    for match in _RANK.finditer(text):
        code = int(match["code"])
        if code < 0 and code != -signal.SIGTERM:  # torchrun ends the others with SIGTERM
            return f"rank {match['rank']} was ended by signal {-code} ({_signal_name(-code)})"
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _first_error(text: str) -> str | None:
    errors = [match["error"] for match in _ERROR.finditer(text)]
    primary = [error for error in errors if not any(word in error for word in _SECONDARY)]
    return shortened(primary[0].rstrip("."), _QUOTED) if primary else None
