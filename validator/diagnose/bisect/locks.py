"""Reads a lock file: requirements pinned with ``==``, with or without hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from validator.diagnose.bisect.packages import OURS, Package, PackageSet
from validator.errors import UsageError

_HASH = re.compile(r"\s--hash[= ](\S+)")
_COMMENT = re.compile(r"(^|\s)#.*$")

#: No lock has so many bytes.
_LARGEST = 16 << 20


def read_lock(file: Path, marker_values: Mapping[str, str]) -> PackageSet:
    """The packages of a lock. Lines whose marker does not hold for ``marker_values`` are left out.

    Raises ``UsageError`` for what is no lock, naming the line.
    """
    try:
        content = file.read_bytes()
        text = content.decode("utf-8")
    except OSError as error:
        raise UsageError(
            f"{str(file)!r} cannot be read ({error.strerror}); name a lock file or an environment."
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"{str(file)!r} is no text; name a lock file or an environment.") from None
    if len(content) > _LARGEST:
        raise UsageError(f"{str(file)!r} is larger than any lock file; name a lock file or an environment.")
    packages: dict[str, Package] = {}
    for number, line in _logical_lines(text):
        package = _package(f"{str(file)!r}, line {number}", line, marker_values)
        if package is None or package.name == OURS:
            continue
        if package.name in packages and not package.is_like(packages[package.name]):
            raise UsageError(f"{str(file)!r}, line {number}: {package.name} is pinned twice; leave one line.")
        packages[package.name] = package
    if not packages:
        raise UsageError(f"{str(file)!r} pins no package; a lock has lines like einops==0.8.2.")
    return PackageSet(str(file), packages)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their number, without comments, with those joined that end in a backslash."""
    joined, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _COMMENT.sub("", raw).rstrip()
        first = first or number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        joined += line
        if joined.strip():
            yield first, joined.strip()
        joined, first = "", 0
    if joined.strip():
        yield first, joined.strip()


def _package(place: str, line: str, marker_values: Mapping[str, str]) -> Package | None:
    if line.startswith("-"):
        option = line.split(maxsplit=1)[0].partition("=")[0]
        raise UsageError(f"{place}: the option {option} is not accepted here; leave it out, and configure pip or uv.")
    hashes = _HASH.findall(line)
    try:
        requirement = Requirement(_HASH.sub("", line).strip())
    except InvalidRequirement as error:
        why = str(error).splitlines()[0]
        raise UsageError(
            f"{place}: {line[:80]!r} is no pinned requirement ({why}); write it like einops==0.8.2."
        ) from None
    pins = list(requirement.specifier)
    if requirement.url or len(pins) != 1 or pins[0].operator != "==" or pins[0].version.endswith(".*"):
        raise UsageError(f"{place}: {line[:80]!r} is not pinned; write it like {requirement.name}==1.2.3.")
    if requirement.marker is not None and not requirement.marker.evaluate(dict(marker_values)):
        return None
    pinned = f"{requirement.name}=={pins[0].version}"
    words = " ".join([pinned, *(f"--hash={value}" for value in sorted(hashes))])
    return Package(canonicalize_name(requirement.name), pins[0].version, requirement=words)
