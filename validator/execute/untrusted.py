"""Files that code under test wrote: opened without following links, read up to a limit, removed whatever they are."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

from validator.errors import LaunchError

#: Folders nested deeper than this, and more entries than this, are no launch's results.
DEEPEST = 40
MOST_ENTRIES = 30_000


class ForgedError(LaunchError):
    """A result that is no plain file of a sensible size: a link, a pipe, a device, too much."""


def open_plain(directory: int, name: str) -> int | None:
    """Open a file for reading below the folder opened as ``directory``; ``None`` where there is none of this name.

    Raises ``ForgedError`` for anything but a regular file with one name, without opening what a link points to, or
    waiting for a pipe.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ForgedError(f"The launch's result {name!r} is no plain file ({error.strerror})") from None
    about = os.fstat(file)
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1:
        os.close(file)
        raise ForgedError(f"The launch's result {name!r} is no plain file of its own")
    return file


def read_small(path: Path, limit: int) -> bytes | None:
    """All of a plain file of at most ``limit`` bytes; ``None`` where there is none, or it is anything else."""
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        file = open_plain(directory, path.name)
    except ForgedError:
        return None
    finally:
        os.close(directory)
    if file is None:
        return None
    with open(file, "rb") as stream:
        content = stream.read(limit + 1)
    return content if len(content) <= limit else None


def used_bytes(directory: Path, limit: int) -> int:
    """Bytes allocated below ``directory``, links not followed; stops counting once ``limit`` is passed.

    What is deleted and still held open is not seen. Raises ``ForgedError`` where folders are nested too deep, or there
    are too many entries, to be a launch's results, and where a folder cannot be looked into.
    """
    used = entries = 0
    for entry in _entries(directory):
        entries += 1
        if entries > MOST_ENTRIES:
            raise ForgedError(f"The launch wrote more than {MOST_ENTRIES} files")
        try:
            used += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError as error:
            raise _closed(error) from None
        if used > limit:
            return used
    return used


def _entries(directory: Path) -> Iterator[os.DirEntry[str]]:
    waiting = [(str(directory), 0)]
    while waiting:
        folder, depth = waiting.pop()
        if depth > DEEPEST:
            raise ForgedError(f"The launch nested folders deeper than {DEEPEST}")
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
        except (FileNotFoundError, NotADirectoryError):
            continue  # removed or replaced meanwhile
        except OSError as error:
            raise _closed(error) from None


def _closed(error: OSError) -> ForgedError:
    """A folder that nobody can look into may be written to all the same."""
    return ForgedError(f"The launch made a folder that cannot be read ({error.strerror})")


def remove_tree(directory: Path) -> None:
    """Remove a folder and all below it, however deep it is nested and whatever its modes; no link is followed.

    Raises ``OSError`` where something stays.
    """
    if not os.path.lexists(directory):
        return
    if _remove(directory):
        return
    # Folders without the right to look into them, which their owner can give back.
    subprocess.run(["chmod", "-R", "--", "u+rwX", str(directory)], capture_output=True, check=False)
    if not _remove(directory):
        raise OSError(f"{directory} cannot be removed")


def _remove(directory: Path) -> bool:
    done = subprocess.run(["rm", "-rf", "--", str(directory)], capture_output=True, check=False)
    return done.returncode == 0 and not os.path.lexists(directory)
