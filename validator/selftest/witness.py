"""The account that a launch gave of itself without the recorder (``validator/faults/witness.py``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from validator.errors import LaunchError
from validator.execute.untrusted import read_small

#: More than the longest account of a launch: some hundred bytes a moment.
_LARGEST = 64 * 2**20

Account = Mapping[tuple[int, str], Mapping[str, str]]


def read_account(scratch: Path, ranks: int) -> Account:
    """(rank, moment) -> part -> its hash. Raises ``LaunchError`` where a rank left none."""
    account: dict[tuple[int, str], dict[str, str]] = {}
    for rank in range(ranks):
        text = read_small(scratch / f"witness-{rank:05d}.jsonl", _LARGEST)
        if text is None:
            raise LaunchError(f"Rank {rank} left no account of its own in {scratch}; look at the launch's log there.")
        for line in text.decode(errors="replace").splitlines():
            try:
                parts = json.loads(line)
            except ValueError:
                continue  # the kill cut the last line short
            account[rank, parts.pop("moment")] = parts
    return account


def touched_leaves(scratch: Path, ranks: int) -> frozenset[tuple[str, str]]:
    """(group, leaf) of what a fault said that it changed; empty where it said nothing."""
    found: set[tuple[str, str]] = set()
    for rank in range(ranks):
        text = read_small(scratch / f"touched-{rank:05d}.jsonl", _LARGEST) or b""
        for line in text.decode(errors="replace").splitlines():
            told = json.loads(line)
            if "leaf" in told:
                found.add((told["group"], told["leaf"]))
    return frozenset(found)


def differ(one: Account, other: Account) -> bool:
    """Whether any bit differed, at the moments that both accounts have."""
    return any(one[place] != other[place] for place in one.keys() & other.keys())
