"""The lines of a rank's text file: how each is written, and how it is read back.

One JSON object a line, keys in a fixed order. The kinds, told apart by their first key:

``schema`` the header · ``table`` begins a leaf table · ``leaf`` one key of the table before it · ``metric`` one metric
· ``group`` one group's digest · ``moment`` closes a moment · ``end`` closes the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from validator.trajectory.groups import Group, Moment
from validator.trajectory.layout import RANK_SCHEMA, VERSION
from validator.trajectory.leaves import XXH3, Algorithm, LeafKey, LeafTable
from validator.trajectory.metrics import Metric

#: ``,"seal":"<32 hex digits>"}`` and the newline: the only bytes of a closing line that its seal does not cover.
SEAL_SUFFIX_BYTES = len(',"seal":""}\n') + 32


def encode(value: Mapping[str, Any]) -> str:
    """One JSON line. ``ValueError`` for NaN and infinities, which JSON cannot hold."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"


def header_line(rank: int, world_size: int, algorithm: Algorithm = XXH3) -> str:
    """The first line of a rank's text file."""
    return encode(
        {"schema": RANK_SCHEMA, "version": VERSION, "algorithm": algorithm.name, "rank": rank, "world_size": world_size}
    )


def key_line(key: LeafKey) -> str:
    """One leaf's key; also what a table's content digest is taken over."""
    return encode({"leaf": key.name, "dtype": key.dtype, "shape": list(key.shape), "shard": key.shard})


def table_lines(index: int, table: LeafTable) -> str:
    """A leaf table: its number within the file, then one line a leaf."""
    return encode({"table": index, "leaves": len(table)}) + "".join(map(key_line, table.keys))


def metric_line(encoded_name: str, metric: Metric) -> str:
    """One metric; ``encoded_name`` is its name as JSON. The decimal is for people, ``bits`` are what counts."""
    return f'{{"metric":{encoded_name},"dtype":"{metric.dtype}","bits":"{metric.bits}","value":"{metric.value!r}"}}\n'


def group_line(group: Group, table: int, leaves: int, digest: bytes) -> str:
    """One group of the moment that the next ``moment`` line closes."""
    return f'{{"group":"{group}","table":{table},"leaves":{leaves},"digest":"{digest.hex()}"}}\n'


def moment_line(moment: Moment, digest: bytes) -> str:
    """The closing line of a moment, up to its seal."""
    return f'{{"moment":"{moment}","digest":"{digest.hex()}"'


def end_line(moments: int, ending: Mapping[str, object]) -> str:
    """The last line of a rank's text file, up to its seal."""
    body = json.dumps(ending, separators=(",", ":"), ensure_ascii=False, allow_nan=False, sort_keys=True)
    return f'{{"end":{body},"moments":{moments}'


def sealed(line: str, seal: bytes) -> str:
    """A closing line with its seal."""
    return f'{line},"seal":"{seal.hex()}"}}\n'


def parse_key(fields: Mapping[str, Any]) -> LeafKey:
    """The key of a ``leaf`` line."""
    return LeafKey(str(fields["leaf"]), str(fields["dtype"]), tuple(map(int, fields["shape"])), str(fields["shard"]))
