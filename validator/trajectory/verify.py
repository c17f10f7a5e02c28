"""Reads one rank's files whole and proves that they are what a writer wrote: seals, folds and lengths."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import xxhash

from validator.errors import TrajectoryError
from validator.trajectory.groups import Group
from validator.trajectory.layout import leaves_name, text_name
from validator.trajectory.leaves import DIGEST_BYTES, Algorithm, LeafTable, fold_group, fold_named
from validator.trajectory.lines import SEAL_SUFFIX_BYTES
from validator.trajectory.record import metric_record
from validator.trajectory.scan import End, PlacedTable, RankMoment, RankScanner


@dataclass(frozen=True, slots=True)
class VerifiedRank:
    """What a rank's files hold, verified.

    ``world_size`` and ``algorithm`` are ``None`` where the rank died before it wrote its header.
    """

    rank: int
    world_size: int | None
    algorithm: Algorithm | None
    moments: tuple[RankMoment, ...]
    tables: tuple[PlacedTable, ...]
    end: End | None


def verify_rank(directory: Path, rank: int) -> VerifiedRank:
    """Read and verify one rank.

    An unfinished tail is legitimate (the launch was killed) and left out. ``TrajectoryError`` names a file that is
    truncated (leaves of a finished moment are missing), edited, foreign or of another version.
    """
    text_path, leaves_path = directory / text_name(rank), directory / leaves_name(rank)
    try:
        text = text_path.read_bytes()
        leaves = leaves_path.read_bytes()
    except FileNotFoundError as missing:
        raise TrajectoryError(f"{missing.filename} is missing; the trajectory of rank {rank} is truncated") from None
    scanner = RankScanner(str(text_path), rank)
    moments = tuple(scanner.feed(text))
    _check_length(leaves_path, len(leaves), moments, scanner.end)
    if scanner.end is not None and scanner.unfinished:
        raise TrajectoryError(f"{text_path} was edited: bytes follow its end record")

    chain = xxhash.xxh3_128(text[: scanner.header_bytes])
    tables = [placed.table for placed in scanner.tables]
    for moment in moments:
        content = leaves[moment.leaves_at : moment.leaves_end]
        chain.update(text[moment.at : moment.closing])
        chain.update(content)
        _check_seal(text_path, chain, text[moment.closing : moment.end], moment.seal)
        _check_folds(text_path, moment, tables, content, scanner.algorithm)
    if scanner.end is not None:
        _check_seal(text_path, chain, text[scanner.end.at :], scanner.end.seal)
    return VerifiedRank(rank, scanner.world_size, scanner.algorithm, moments, tuple(scanner.tables), scanner.end)


def _check_length(path: Path, size: int, moments: tuple[RankMoment, ...], end: End | None) -> None:
    expected = moments[-1].leaves_end if moments else 0
    if size < expected:
        raise TrajectoryError(f"{path} is truncated: {size} bytes where its finished moments have {expected}")
    if end is not None and size > expected:
        raise TrajectoryError(f"{path} was edited: {size} bytes where its moments have {expected}")


def _check_seal(path: Path, chain: xxhash.xxh3_128, line: bytes, seal: str) -> None:
    """``line`` is a closing line with its newline; the chain has taken all before it, and then takes it too."""
    chain.update(line[:-SEAL_SUFFIX_BYTES])
    if line[-SEAL_SUFFIX_BYTES:] != f',"seal":"{chain.hexdigest()}"}}\n'.encode():
        raise TrajectoryError(
            f"{path} or its leaves were edited: the seal {seal} does not fit what comes before it; "
            "record the trajectory again"
        )
    chain.update(line[-SEAL_SUFFIX_BYTES:])


def _check_folds(
    path: Path, moment: RankMoment, tables: list[LeafTable], content: bytes, algorithm: Algorithm | None
) -> None:
    """The chain finds edits; this finds a writer that folded wrongly."""
    assert algorithm is not None, "a moment comes after its file's header"
    for group, entry in moment.groups.items():
        start = entry.at - moment.leaves_at
        digests = content[start : start + entry.leaves * DIGEST_BYTES]
        if fold_group(tables[entry.table], digests) != entry.digest:
            raise TrajectoryError(f"{path} was edited: group {group} at {moment.moment} does not fold from its leaves")
        if group is Group.METRICS:
            metrics = metric_record(moment.metrics, tables[entry.table], algorithm)
            if metrics.digests != digests:
                raise TrajectoryError(f"{path} was edited: the metrics at {moment.moment} are not those of its leaves")
    if fold_named((group, entry.digest) for group, entry in moment.groups.items()) != moment.digest:
        raise TrajectoryError(f"{path} was edited: {moment.moment} does not fold from its groups")
    if moment.metrics and Group.METRICS not in moment.groups:
        raise TrajectoryError(f"{path} was edited: {moment.moment} has metrics and no leaves for them")
