"""What a launch job left behind, taken as untrusted: sizes, counts and kinds are checked before anything is read."""

from __future__ import annotations

import json
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from jsonschema import Draft202012Validator

from validator.errors import UsageError
from validator.github.errors import ForgedResultError
from validator.github.limits import MOST_BYTES, MOST_FILES, MOST_PARTS, MOST_REPORT_BYTES, REPORT
from validator.report.json import report_schema
from validator.report.model import Report
from validator.report.reading import from_document

_MOST_NAME = 200


@dataclass(frozen=True, slots=True)
class Result:
    """One pipeline's result: its report as it claims it, and the folder that holds the trajectories."""

    report: Report
    folder: Path

    def trajectory(self, launch: str) -> Path:
        """Where the trajectory of a launch lies, if it is there."""
        return self.folder / "launches" / launch / "trajectory"


def read_result(place: Path, scratch: Path) -> Result:
    """The result in a folder, a zip, or beside a report.json. Zips are unpacked below ``scratch``.

    Raises ``UsageError`` where there is nothing, ``ForgedResultError`` where it is not what a check leaves behind.
    """
    if place.is_symlink():
        raise ForgedResultError(f"{place} is a link; a result holds plain files only.")
    if place.is_file() and place.suffix == ".zip":
        folder = scratch / f"result-{len(list(scratch.iterdir()))}"
        unpack(place, folder)
    elif place.is_file():
        folder = place.parent
    elif place.is_dir():
        folder = place
    else:
        raise UsageError(f"{place} is not there; name a result's folder, its report.json or its zip.")
    check_folder(folder)
    return Result(read_report(folder / REPORT if not place.is_file() or place.suffix == ".zip" else place), folder)


def read_report(file: Path) -> Report:
    """A report that fits its schema. Raises ``ForgedResultError``."""
    try:
        if file.stat().st_size > MOST_REPORT_BYTES:
            raise ForgedResultError(f"{file} is larger than the {MOST_REPORT_BYTES} bytes that a report may have.")
        content = json.loads(file.read_bytes())
        problem = next(Draft202012Validator(report_schema()).iter_errors(content), None)
    except FileNotFoundError:
        raise ForgedResultError(f"{file.parent} holds no {file.name}; a result has one.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ForgedResultError(f"{file} is no readable report ({type(error).__name__}).") from error
    if problem is not None:
        where = "/".join(map(str, problem.absolute_path))[:_MOST_NAME]
        raise ForgedResultError(f"{file} does not fit the report's schema at {where or 'its top'}.")
    try:
        return from_document(content, str(file))
    except (UsageError, RecursionError) as error:
        raise ForgedResultError(f"{file} is no report of a check ({str(error)[:_MOST_NAME]}).") from error


def check_folder(folder: Path) -> None:
    """Raise ``ForgedResultError`` for a link, a special file, or more than a result may have."""
    total = 0
    for files, path in enumerate(_walk(folder), start=1):
        mode = path.lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise ForgedResultError(f"{path} is a link or a special file; a result holds plain files only.")
        total += path.lstat().st_size if stat.S_ISREG(mode) else 0
        if files > MOST_FILES or total > MOST_BYTES:
            raise ForgedResultError(f"{folder} has more than the {MOST_FILES} files or {MOST_BYTES} bytes of a result.")


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip into the new ``folder``, counting what really comes out. Raises ``ForgedResultError``."""
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = opened.infolist()
            if len(entries) > MOST_FILES:
                raise ForgedResultError(f"{archive} has {len(entries)} entries; a result has at most {MOST_FILES}.")
            room = MOST_BYTES
            seen: set[PurePosixPath] = set()
            for entry in entries:
                name = _name(archive, entry)
                if name in seen:
                    raise ForgedResultError(f"{archive} holds {str(name)[:_MOST_NAME]!r} twice.")
                seen.add(name)
                target = folder / name
                if entry.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                target.parent.mkdir(parents=True, exist_ok=True)
                with opened.open(entry) as source, target.open("xb") as file:
                    while piece := source.read(1 << 20):
                        room -= len(piece)
                        if room < 0:
                            raise ForgedResultError(f"{archive} unpacks to more than {MOST_BYTES} bytes.")
                        file.write(piece)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise ForgedResultError(
            f"{archive} cannot be unpacked ({type(error).__name__}: {str(error)[:100]})."
        ) from error


def _name(archive: Path, entry: zipfile.ZipInfo) -> PurePosixPath:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    shown = entry.filename[:_MOST_NAME]
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise ForgedResultError(
            f"{archive} holds {shown!r}, a link or a special file; a result holds plain files only."
        )
    name = PurePosixPath(entry.filename)
    bad = name.is_absolute() or ".." in name.parts or "\\" in entry.filename or not entry.filename.isprintable()
    if bad or not name.parts or len(name.parts) > MOST_PARTS or len(entry.filename) > _MOST_NAME:
        raise ForgedResultError(f"{archive} holds the name {shown!r}; a result's names stay within its folder.")
    return name


def _walk(folder: Path) -> Iterator[Path]:
    for top, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            yield Path(top) / name
