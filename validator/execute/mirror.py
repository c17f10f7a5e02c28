"""Carries results from where code under test writes to where the host reads, while the launch runs.

What arrives is made of plain files that only the host can write, of the names and sizes that a launch may have: all
that follows (following, sealing, comparing) reads nothing else, and what was read once cannot be changed later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from validator.execute.request import LaunchRequest
from validator.execute.untrusted import ForgedError, open_plain
from validator.trajectory.layout import leaves_name, text_name

_PIECE = 4 << 20

#: Longest line of a rank's text, in bytes: an end record names every tensor once.
_LONGEST_LINE = 8 << 20

#: Largest of the files that are written once, in bytes.
_SMALL = 8 << 20

#: Largest trace of one rank, and largest account that a self-test's rank gives of itself, in bytes.
_TRACE, ACCOUNT = 256 << 20, 64 << 20

#: Largest sample, and largest total of a launch's samples, in bytes. A sample has as many as its leaf, whose size is
#: known only from the launch itself.
_SAMPLE, _SAMPLES = 1 << 31, 1 << 32


@dataclass(slots=True)
class _Growing:
    """A file that ranks append to: copied so far, and where its last whole line ends."""

    name: str
    limit: int
    lines: bool
    copied: int = 0
    line: int = 0


@final
@dataclass(slots=True)
class Mirror:
    """Copies from ``source``, where the launch's scratch folder is seen on the host, to the request's own folders.

    All copies together have at most ``most`` bytes, whatever the files take on the launch's side: they may be sparse.
    """

    source: Path
    request: LaunchRequest
    most: int
    _copied: int = field(default=0, init=False)
    _growing: list[_Growing] = field(init=False)

    def __post_init__(self) -> None:
        steps = self.request.steps + 16
        text, leaves = min(steps << 20, 1 << 29), min(steps << 24, 1 << 33)
        self._growing = []
        for rank in range(self.request.ranks):
            self._growing += [_Growing(text_name(rank), text, True), _Growing(leaves_name(rank), leaves, False)]

    def follow(self) -> None:
        """Take over what the ranks have appended since. Raises ``ForgedError`` for what no writer writes.

        Leaves go first: a moment counts once its closing line is there, and its leaves were written before that.
        """
        directory = self._open(self.source / self.request.trajectory.name)
        if directory is None:
            return
        try:
            sizes = {each.name: self._size(directory, each.name) for each in self._growing if each.lines}
            for each in sorted(self._growing, key=lambda file: file.lines):
                self._append(directory, each, sizes.get(each.name))
        finally:
            os.close(directory)

    def finish(self) -> None:
        """Take over everything, once nothing of the launch runs any more."""
        self.follow()
        self._copy_from_scratch()
        self._copy_trace()
        directory = self._open(self.source / self.request.trajectory.name)
        if directory is None:
            return
        try:
            for name in self._small():
                self._copy(directory, name, self.request.trajectory / name, _SMALL)
            samples = self._open(Path("samples"), directory)
            if samples is not None:
                try:
                    self._copy_samples(samples)
                finally:
                    os.close(samples)
        finally:
            os.close(directory)

    def _small(self) -> Iterator[str]:
        yield self.request.claims_file.name
        for rank in range(self.request.ranks):
            yield self.request.coverage_file(rank).name

    def _copy_from_scratch(self) -> None:
        """What a measured launch measured, and what a self-test's launch says of itself."""
        directory = self._open(self.source)
        if directory is None:
            return
        try:
            for rank in range(self.request.ranks):
                for target, limit in (
                    (self.request.measurement_file(rank), _SMALL),
                    (self.request.account_file(rank), ACCOUNT),
                    (self.request.touched_file(rank), ACCOUNT),
                ):
                    self._copy(directory, target.name, target, limit)
        finally:
            os.close(directory)

    def _copy_trace(self) -> None:
        directory = None if self.request.trace is None else self._open(self.source / self.request.trace_directory.name)
        if directory is None:
            return
        self.request.trace_directory.mkdir(exist_ok=True)
        try:
            for rank in range(self.request.ranks):
                target = self.request.trace_file(rank)
                self._copy(directory, target.name, target, _TRACE)
        finally:
            os.close(directory)

    def _copy_samples(self, directory: int) -> None:
        total = sum(self._size(directory, f"{sample.stem}.bin") for sample in self.request.samples)
        if total > _SAMPLES:
            raise ForgedError(f"The launch's samples are larger than {_SAMPLES} bytes together")
        self._insist_on_room(total)
        target = self.request.samples_directory
        target.mkdir(exist_ok=True)
        for sample in self.request.samples:
            self._copy(directory, f"{sample.stem}.json", target / f"{sample.stem}.json", 1 << 20)
            self._copy(directory, f"{sample.stem}.bin", target / f"{sample.stem}.bin", _SAMPLE)

    def _insist_on_room(self, size: int) -> None:
        if self._copied + size > self.most:
            raise ForgedError(
                f"The launch's results are larger than {self.most} bytes together (policy.limits.disk_gibibytes)"
            )

    @staticmethod
    def _open(path: Path, below: int | None = None) -> int | None:
        try:
            return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=below)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ForgedError(f"The launch's folder {path.name!r} is no folder ({error.strerror})") from None

    @staticmethod
    def _size(directory: int, name: str) -> int:
        file = open_plain(directory, name)
        if file is None:
            return 0
        try:
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def _append(self, directory: int, each: _Growing, until: int | None) -> None:
        """Copy what is new, up to byte ``until`` where that is given."""
        file = open_plain(directory, each.name)
        if file is None:
            return
        with open(file, "rb") as source:
            size = os.fstat(file).st_size
            until = size if until is None else min(until, size)
            if until > each.limit:
                raise ForgedError(f"The launch's result {each.name!r} is larger than {each.limit} bytes")
            if until <= each.copied:
                return
            self._insist_on_room(until - each.copied)
            source.seek(each.copied)
            with (self.request.trajectory / each.name).open("ab") as target:
                while each.copied < until and (piece := source.read(min(_PIECE, until - each.copied))):
                    if each.lines:
                        self._measure(each, piece)
                    target.write(piece)
                    each.copied += len(piece)
                    self._copied += len(piece)

    @staticmethod
    def _measure(each: _Growing, piece: bytes) -> None:
        last = piece.rfind(b"\n")
        longest = max(map(len, piece.split(b"\n")))
        begun = piece.find(b"\n") if last >= 0 else len(piece)
        if max(longest, each.line + begun) > _LONGEST_LINE:
            raise ForgedError(f"The launch's result {each.name!r} has a line of more than {_LONGEST_LINE} bytes")
        each.line = each.line + len(piece) if last < 0 else len(piece) - last - 1

    def _copy(self, directory: int, name: str, target: Path, limit: int) -> None:
        file = open_plain(directory, name)
        if file is None:
            return
        with open(file, "rb") as source:
            left = os.fstat(file).st_size
            if left > limit:
                raise ForgedError(f"The launch's result {name!r} is larger than {limit} bytes")
            self._insist_on_room(left)
            with target.open("wb") as copy:
                while left and (piece := source.read(min(_PIECE, left))):
                    copy.write(piece)
                    left -= len(piece)
                    self._copied += len(piece)
