"""The account that a launch gave of itself without the recorder (``validator/faults/witness.py``)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from validator.errors import LaunchError
from validator.execute.mirror import ACCOUNT
from validator.execute.request import account_name, touched_name
from validator.execute.untrusted import read_small

Account = Mapping[tuple[int, str], Mapping[str, str]]


def read_account(scratch: Path, ranks: int) -> Account:
    """(rank, moment) -> part -> its hash. Raises ``LaunchError`` where a rank left none, or something else."""
    account: dict[tuple[int, str], dict[str, str]] = {}
    for rank in range(ranks):
        file = scratch / account_name(rank)
        text = read_small(file, ACCOUNT)
        if text is None:
            raise LaunchError(f"Rank {rank} left no account of its own in {scratch}; look at the launch's log there.")
        for parts in _told(text):
            moment = parts.pop("moment", None)
            if not isinstance(moment, str):
                raise LaunchError(f"The account in {file} has a line without a moment; look at the launch's log there.")
            account[rank, moment] = parts
    return account


def touched_leaves(scratch: Path, ranks: int) -> frozenset[tuple[str, str]]:
    """(group, leaf) of what a fault said that it changed; empty where it said nothing."""
    files = [scratch / touched_name(rank) for rank in range(ranks)]
    lines = [line for file in files for line in _told(read_small(file, ACCOUNT))]
    return frozenset((str(line.get("group")), str(line["leaf"])) for line in lines if "leaf" in line)


def _told(text: bytes | None) -> Iterator[dict[str, Any]]:
    """The lines that are whole and say something: a kill cuts the last one short."""
    for line in (text or b"").decode(errors="replace").splitlines():
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, dict):
            yield told


def differ(one: Account, other: Account) -> bool:
    """Whether any bit differed, at the moments that both accounts have."""
    return any(one[place] != other[place] for place in one.keys() & other.keys())
