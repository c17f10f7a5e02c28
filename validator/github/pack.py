"""What of a check's folder is handed on to publishing: its report, trajectories and logs, as plain files."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from validator.errors import LaunchError, UsageError
from validator.github.limits import MOST_BYTES, REPORT
from validator.trajectory.layout import ENVIRONMENT

LOG = "log.txt"

#: Of a log only the end is kept: the last thing that a launch said.
MOST_LOG_BYTES = 4 << 20


def pack(out: Path, target: Path) -> int:
    """Copy into the new folder ``target``; returns the number of files. Links and special files are passed over.

    Raises ``UsageError`` where ``out`` holds no report, ``LaunchError`` where the disk is full.
    """
    if not (out / REPORT).is_file():
        raise UsageError(f"{out} holds no {REPORT}; name the folder that a check was given as --out.")
    if target.exists():
        raise UsageError(f"{target} exists; name a folder that is not there yet.")
    number = 0
    room = MOST_BYTES
    try:
        for path in _wanted(out):
            own = path.lstat()
            if not stat.S_ISREG(own.st_mode):
                continue
            size = min(own.st_size, MOST_LOG_BYTES) if path.name == LOG else own.st_size
            room -= size
            if room < 0:
                raise LaunchError(f"{out} has more than the {MOST_BYTES} bytes that a result may have.")
            copy = target / path.relative_to(out)
            copy.parent.mkdir(parents=True, exist_ok=True)
            _copy(path, copy, size)
            number += 1
    except OSError as error:
        raise LaunchError(f"{target} cannot be written ({error.strerror}); free space there.") from error
    return number


def _wanted(out: Path) -> Iterator[Path]:
    yield out / REPORT
    for launch in sorted((out / "launches").glob("*")):
        yield from (file for file in [launch / LOG] if file.exists())
        folder = launch / "trajectory"
        if not folder.is_symlink():
            yield from sorted(folder.glob("rank-*"))
            yield from (file for file in [folder / ENVIRONMENT] if file.exists())


def _copy(source: Path, target: Path, size: int) -> None:
    """The last ``size`` bytes; a file that turned into a link is not followed."""
    with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file, target.open("xb") as copy:
        file.seek(max(0, os.fstat(file.fileno()).st_size - size))
        while size > 0 and (piece := file.read(min(size, 1 << 20))):
            copy.write(piece)
            size -= len(piece)
