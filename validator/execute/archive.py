"""Loads an image's archive under no name but ours: the names that it carries could be those of images that are
trusted here.
"""

from __future__ import annotations

import io
import json
import os
import re
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from validator.errors import LaunchError, UsageError
from validator.execute.docker_engine import Engine, tag_for
from validator.execute.owner import Owner
from validator.report.text import printable

_LOADED = re.compile(r"Loaded image(?: ID)?: (\S+)")

#: Annotations of an OCI index that name an image.
_NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")

#: Largest file of names in an archive, in bytes.
_LARGEST = 4 << 20


def load_archive(engine: Engine, file: Path, owner: Owner) -> tuple[str, str]:
    """Load ``file`` (``docker save``, or an OCI layout in a tar), and tag it so that it is found again.

    Returns the image's ID and the tag. Raises ``UsageError`` where it is no archive of one image.
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
    tag = tag_for(owner)
    with engine.speaking("naming the loaded image"):
        image = engine.client.images.get(found[0])
        image.tag(*tag.split(":"))
    return str(image.id), tag


def check_archive(file: Path) -> None:
    """Raise ``UsageError`` for what is no archive of an image."""
    try:
        with tarfile.open(file) as archive:
            archive.next()
    except (tarfile.TarError, OSError, EOFError):
        raise UsageError(f"{file} is no archive of an image; --image takes what docker save writes.") from None


class nameless:  # noqa: N801 - reads as a context manager
    """The archive as a stream, its names taken out on the way. Memory does not grow with the archive."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._problem: BaseException | None = None

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
            raise UsageError(f"{self._file} cannot be read as an archive ({self._problem}); change --image.")

    def _write(self, into: IO[bytes]) -> None:
        try:
            with into, tarfile.open(self._file, "r:*") as archive, tarfile.open(fileobj=into, mode="w|") as target:
                for member, content in _without_names(archive):
                    target.addfile(member, content)
        except BrokenPipeError:
            pass  # the engine has heard enough
        except (tarfile.TarError, OSError, EOFError, ValueError, LaunchError) as error:
            self._problem = error


def _without_names(archive: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, IO[bytes] | None]]:
    for member in archive:
        if member.name == "repositories":
            continue
        content = archive.extractfile(member) if member.isfile() else None
        if content is not None and member.name in {"manifest.json", "index.json"}:
            if member.size > _LARGEST:
                raise ValueError(f"its {member.name} has {member.size} bytes")
            text = json.dumps(strip_names(json.loads(content.read()))).encode()
            member.size, content = len(text), io.BytesIO(text)
        yield member, content


def strip_names(told: Any) -> Any:
    """``manifest.json`` or ``index.json`` of an archive without the names that it gives to images."""
    if isinstance(told, list):
        return [{**entry, "RepoTags": None} if isinstance(entry, dict) else entry for entry in told]
    if isinstance(told, dict):
        for manifest in told.get("manifests") or []:
            if isinstance(manifest, dict) and isinstance(manifest.get("annotations"), dict):
                for name in _NAMES:
                    manifest["annotations"].pop(name, None)
    return told
