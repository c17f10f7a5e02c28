"""The files of one golden: digests over them, and putting a new set in place of the old."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from validator.errors import TrajectoryError

RECORD = "golden.json"
TRAJECTORY = "trajectory"

#: The module trace of step 1, compressed; a golden may go without.
TRACE = "trace.jsonl.xz"


def digest_files(folder: Path) -> dict[str, str]:
    """SHA-256 by path below ``folder`` of every file but golden.json; ``TrajectoryError`` for what is no plain file."""
    digests = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise TrajectoryError(f"{path} is no plain file; a golden holds files only, so remove it.")
        if path.is_file() and name != RECORD:
            with path.open("rb") as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def check_files(folder: Path, expected: dict[str, str]) -> None:
    """Raise ``TrajectoryError`` for the first file that is missing, edited, or not the golden's."""
    found = digest_files(folder)
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            problem = "is missing"
        elif name not in expected:
            problem = "does not belong to the golden"
        elif found[name] != expected[name]:
            problem = "was edited or truncated after the golden was recorded"
        else:
            continue
        raise TrajectoryError(f"{folder / name} {problem}; restore the golden from git or record it anew.")


def replace_folder(new: Path, target: Path) -> None:
    """Put ``new`` (on the same file system) in ``target``'s place, which is never seen half-written.

    If the process dies between the two renames, ``target`` is missing and its old content lies beside it: no golden,
    which is never a pass.
    """
    old = target.with_name(f".{target.name}.superseded")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        os.replace(target, old)
    os.replace(new, target)
    shutil.rmtree(old, ignore_errors=True)
