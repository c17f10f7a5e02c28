"""Loads an image's archive under no name but ours: the names that it carries could be those of images that are
trusted here.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import posixpath
import re
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from validator.errors import UsageError
from validator.execute.docker_engine import Engine, tag_for
from validator.execute.owner import Owner
from validator.report.text import printable

_LOADED = re.compile(r"Loaded image(?: ID)?: (\S+)")

#: Files that say what an archive holds; what they name images by is taken out. ``repositories`` does nothing else.
_INDEXES = frozenset({"manifest.json", "index.json"})
_REPOSITORIES = "repositories"

#: Annotations of an OCI index that name an image.
_NAMES = frozenset({"io.containerd.image.name", "org.opencontainers.image.ref.name"})

#: Largest file of names in an archive, in bytes.
_LARGEST = 4 << 20

#: No header of a tar: an engine that meets it refuses all that it has read.
_NO_HEADER = b"\xff" * 512

#: Counts the archives that this process has loaded.
_numbers = itertools.count(1)


def load_archive(engine: Engine, file: Path, owner: Owner) -> tuple[str, str]:
    """Load ``file`` (``docker save``, or an OCI layout in a tar), and tag it so that it is found again.

    Returns the image's ID and the tag, which no other archive gets. Raises ``UsageError`` where it is no archive of one
    image.
    """
    check_archive(file)
    with engine.speaking("loading the archive"), nameless(file) as stream:
        answers = list(engine.client.api.load_image(stream))
    told = "".join(str(answer.get("stream", "")) for answer in answers)
    found = _LOADED.findall(told)
    problem = next((str(answer["error"]) for answer in answers if "error" in answer), None)
    if problem is not None or len(found) != 1:
        why = problem or f"it holds {len(found)} images"
        raise UsageError(f"{file} cannot be loaded as one image ({printable(why)[:200]}); change --image.")
    tag = tag_for(owner, next(_numbers))
    with engine.speaking("naming the loaded image"):
        image = engine.client.images.get(found[0])
        image.tag(*tag.split(":"))
    return str(image.id), tag


def check_archive(file: Path) -> None:
    """Raise ``UsageError`` for what is no archive of an image."""
    try:
        with tarfile.open(file) as archive:
            archive.next()
    except Exception:  # tarfile raises whatever its content leads to
        raise UsageError(f"{file} is no archive of an image; --image takes what docker save writes.") from None


class nameless:  # noqa: N801 - reads as a context manager
    """The archive as a stream, its names taken out on the way. Memory does not grow with the archive."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._problem: Exception | None = None

    def __enter__(self) -> IO[bytes]:
        out, into = os.pipe()
        self._stream = open(out, "rb")
        self._thread = threading.Thread(target=self._write, args=(open(into, "wb"),), daemon=True)
        self._thread.start()
        return self._stream

    def __exit__(self, *_: object) -> None:
        self._stream.close()
        self._thread.join()
        if self._problem is not None:
            why = printable(str(self._problem) or type(self._problem).__name__)[:200]
            raise UsageError(f"{self._file} cannot be read as an archive ({why}); change --image.")

    def _write(self, into: IO[bytes]) -> None:
        with contextlib.suppress(BrokenPipeError), into:  # the engine may have heard enough
            try:
                with tarfile.open(self._file, "r:*") as archive, tarfile.open(fileobj=into, mode="w|") as target:
                    for member, content in _without_names(archive):
                        target.addfile(member, content)
            except BrokenPipeError:
                raise
            except Exception as error:  # whatever the archive's content leads to: corrupt, nested without end
                self._problem = error
                into.write(_NO_HEADER)


def _without_names(archive: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    """Members as the engine is to see them: under the names that it would make of theirs, and made anew, so that it
    cannot read another one out of a header. Raises ``ValueError`` for what could bring in a name unseen.
    """
    seen: set[str] = set()
    links: set[str] = set()
    for member in archive:
        name = cleaned(member.name)
        if not name:
            continue  # the archive's own folder
        if name in _INDEXES or name == _REPOSITORIES:
            if not member.isfile():
                raise ValueError(f"its {name} is no plain file")
            if name in seen:
                raise ValueError(f"it holds {name} twice")
            seen.add(name)
        if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            raise ValueError(f"its {name} is neither a file nor a folder nor a link")
        if any(str(folder) in links for folder in PurePosixPath(name).parents):
            raise ValueError(f"its {name} lies below a link")
        if member.issym() or member.islnk():
            links.add(name)
        if name == _REPOSITORIES:
            continue
        content = archive.extractfile(member) if member.isfile() else None
        size = member.size if content is not None else 0
        if content is not None and name in _INDEXES:
            if size > _LARGEST:
                raise ValueError(f"its {name} has {size} bytes")
            text = _stripped(name, content.read())
            size, content = len(text), io.BytesIO(text)
        yield _made_anew(member, name, size), content


def cleaned(name: str) -> str:
    """A member's name as an engine cleans it: below the archive's own folder, which is empty."""
    return posixpath.normpath(f"/{name.lstrip('/')}").lstrip("/")


def _made_anew(member: tarfile.TarInfo, name: str, size: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = tarfile.REGTYPE if member.isfile() else member.type
    made.size, made.mode, made.linkname = size, 0o755, member.linkname
    return made


def _stripped(name: str, content: bytes) -> bytes:
    try:
        told = json.loads(content)
        text = json.dumps(strip_names(told)).encode()
    except (ValueError, RecursionError):
        raise ValueError(f"its {name} is no readable JSON") from None
    if name == "manifest.json" and isinstance(told, list) and len(told) != 1:
        raise ValueError(f"it holds {len(told)} images")
    return text


def strip_names(told: Any) -> Any:
    """``manifest.json`` or ``index.json`` of an archive without the names that it gives to images.

    An engine does not tell capital letters from small ones in the names of fields.
    """
    if isinstance(told, list):
        return [strip_names(entry) for entry in told]
    if isinstance(told, dict):
        kept = {name: value for name, value in told.items() if name not in _NAMES}
        return {name: None if name.casefold() == "repotags" else strip_names(value) for name, value in kept.items()}
    return told
