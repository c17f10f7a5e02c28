"""A result as one file: the report and the trajectories of a check, packed the same way every time."""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from validator.errors import UsageError, ValidatorError

#: The report's name in a result.
REPORT = "report.json"

#: What a result may hold; everything else of a check's folder (data, checkpoints, logs) stays where it is.
_WANTED = re.compile(
    r"report\.json|launches/[a-z0-9][a-z0-9_-]{0,60}/trajectory/"
    r"(trajectory\.json|environment\.json|tree\.bin|rank-\d{5}\.(jsonl|leaves))"
)

MOST_FILES = 100_000


class ContentError(ValidatorError):
    """What was handed in is no result."""


class TooLargeError(ContentError):
    """What was handed in is larger than is taken."""


def pack(out: Path, target: BinaryIO) -> str:
    """Write the result in a check's folder to ``target``; gives its SHA-256, hexadecimal. Equal ones give equal bytes.

    Raises ``UsageError`` where there is no report in ``out``.
    """
    if not (out / REPORT).is_file():
        raise UsageError(f"{out} holds no {REPORT}; name the folder that a check was given with --out.")
    with (
        gzip.GzipFile(fileobj=target, mode="wb", filename="", mtime=0, compresslevel=1) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for file in _files(out):
            member = tarfile.TarInfo(file.relative_to(out).as_posix())
            member.size = file.stat().st_size
            with file.open("rb") as stream:
                archive.addfile(member, stream)
    target.seek(0)
    digest = hashlib.sha256()
    while block := target.read(1 << 20):
        digest.update(block)
    target.seek(0)
    return digest.hexdigest()


def unpack(source: IO[bytes], target: Path, limit: int) -> None:
    """Write the files of a packed result below ``target``, an empty folder. The content is untrusted: nothing but the
    known names, plain files, once each, ``limit`` bytes in all.

    Raises ``ContentError``; ``OSError`` where the disk is full.
    """
    left, count, seen = limit, 0, set[str]()
    try:
        unzipped = cast("IO[bytes]", _Limited(gzip.GzipFile(fileobj=source), limit + 64 * 1024**2))
        with tarfile.open(fileobj=unzipped, mode="r|") as archive:
            for member in archive:
                count += 1
                left -= member.size
                if left < 0 or count > MOST_FILES:
                    raise TooLargeError(f"The result unpacks to more than {limit} bytes or {MOST_FILES} files.")
                if not member.isreg() or not _WANTED.fullmatch(member.name) or member.name in seen:
                    raise ContentError(f"The result holds {member.name[:100]!r}, which is no file of a result.")
                seen.add(member.name)
                stream = archive.extractfile(member)
                assert stream is not None
                place = target / member.name
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as file:
                    while block := stream.read(1 << 20):
                        file.write(block)
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, UnicodeError) as error:
        raise ContentError(f"The result is no whole archive: {error}.") from error
    except OSError as error:
        if error.errno is None:  # gzip's own, without a cause in the file system
            raise ContentError(f"The result is no whole archive: {error}.") from error
        raise
    except Exception as error:
        if type(error).__module__ == "zlib":
            raise ContentError(f"The result is no whole archive: {error}.") from error
        raise
    if REPORT not in seen:
        raise ContentError(f"The result holds no {REPORT}.")


class _Limited:
    """Reads at most so many bytes: a small archive may unpack to a very large one."""

    def __init__(self, stream: gzip.GzipFile, limit: int) -> None:
        self._stream = stream
        self._left = limit

    def read(self, size: int, /) -> bytes:
        block = self._stream.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise TooLargeError("The result unpacks to more than is taken.")
        return block


def _files(out: Path) -> Iterator[Path]:
    yield out / REPORT
    for file in sorted((out / "launches").glob("*/trajectory/*")):
        if file.is_file() and not file.is_symlink() and _WANTED.fullmatch(file.relative_to(out).as_posix()):
            yield file
