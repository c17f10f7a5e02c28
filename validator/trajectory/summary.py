"""``trajectory.json``: the summary of a sealed trajectory, closed by a digest over its own text.

Whoever reads this file and finds its digest right knows the size and SHA-256 of every other file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from validator.errors import TrajectoryError
from validator.trajectory.layout import SUMMARY, TRAJECTORY_SCHEMA, VERSION
from validator.trajectory.leaves import ALGORITHMS, XXH3, Algorithm


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: temporary name, sync, rename."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def write_summary(directory: Path, fields: Mapping[str, Any], algorithm: Algorithm = XXH3) -> None:
    """Write ``trajectory.json``: schema, version and algorithm, then ``fields``, then the digest over all of it."""
    head = {"schema": TRAJECTORY_SCHEMA, "version": VERSION, "algorithm": algorithm.name}
    text = json.dumps({**head, **fields}, indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}").encode()
    write_atomically(directory / SUMMARY, text + _closing(text))


def read_summary(directory: Path) -> Mapping[str, Any]:
    """Read and check ``trajectory.json``.

    ``TrajectoryError`` where it is absent, truncated, edited, foreign or of another version.
    """
    path = directory / SUMMARY
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise TrajectoryError(f"{directory} is no sealed trajectory: it has no {SUMMARY}") from None
    fields = _parse(path, content)
    if fields.get("schema") != TRAJECTORY_SCHEMA:
        raise TrajectoryError(
            f"{path} is foreign: its schema is {fields.get('schema')!r}, a trajectory's is {TRAJECTORY_SCHEMA!r}"
        )
    if fields.get("version") != VERSION:
        raise TrajectoryError(
            f"{path} has version {fields.get('version')!r}, this validator reads version {VERSION}; "
            "read it with the validator that wrote it"
        )
    if fields.get("algorithm") not in ALGORITHMS:
        raise TrajectoryError(
            f"{path} has digests of {fields.get('algorithm')!r}, this validator knows {' and '.join(ALGORITHMS)}; "
            "read it with the validator that wrote it"
        )
    at = content.rfind(b',\n "digest": "')
    if at < 0 or content[at:] != _closing(content[:at]):
        raise TrajectoryError(f"{path} was edited: its digest does not fit its text; restore it or record again")
    return fields


def file_fact(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of one file, as the summary lists them."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": file.tell(), "sha256": digest}


def _closing(text: bytes) -> bytes:
    return f',\n "digest": "{hashlib.sha256(text).hexdigest()}"\n}}\n'.encode()


def _parse(path: Path, content: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(content)
    except ValueError:
        if content.endswith(b"\n}\n"):
            raise TrajectoryError(f"{path} was edited: it is no JSON; restore it or record again") from None
        raise TrajectoryError(f"{path} is truncated: it ends after {len(content)} bytes in mid-text") from None
    if not isinstance(fields, dict):
        raise TrajectoryError(f"{path} is foreign: it holds no JSON object")
    if not content.endswith(b"\n}\n") and fields.get("schema") == TRAJECTORY_SCHEMA:
        raise TrajectoryError(f"{path} is truncated: it ends after {len(content)} bytes")
    return fields
