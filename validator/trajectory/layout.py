"""Names of the files of a trajectory, its schemas and versions: each written once, here."""

from __future__ import annotations

import re
from pathlib import Path

TRAJECTORY_SCHEMA = "validator/trajectory"
RANK_SCHEMA = "validator/rank"
VERSION = 1

SUMMARY = "trajectory.json"
ENVIRONMENT = "environment.json"
TREE = "tree.bin"


def text_name(rank: int) -> str:
    """File of one rank that people read: JSON lines."""
    return f"rank-{rank:05d}.jsonl"


def leaves_name(rank: int) -> str:
    """File of one rank that holds leaf digests only, 16 bytes each."""
    return f"rank-{rank:05d}.leaves"


def present_ranks(directory: Path) -> tuple[int, ...]:
    """Ranks that have a text file in ``directory``, ascending."""
    found = (re.fullmatch(r"rank-(\d{5,})\.jsonl", path.name) for path in directory.glob("rank-*.jsonl"))
    return tuple(sorted(int(match[1]) for match in found if match))
