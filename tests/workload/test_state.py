"""Scalars as leaves: by their bits, and by their kind."""

from __future__ import annotations

import struct

import pytest

from validator.trajectory.groups import Group
from validator.workload.digests import Digester
from validator.workload.state import Leaf, number


@pytest.mark.parametrize(
    ("value", "dtype", "content"),
    [
        (3, "int64", struct.pack("<q", 3)),
        (-1, "int64", b"\xff" * 8),
        (True, "int64", struct.pack("<q", 1)),
        (2**63 - 1, "int64", b"\xff" * 7 + b"\x7f"),
        (2**63, "bytes", b"9223372036854775808"),
        (0.1, "float64", bytes.fromhex("9a9999999999b93f")),
        (-0.0, "float64", bytes.fromhex("0000000000000080")),
        (None, "bytes", b"None"),
        ("cosine", "bytes", b"'cosine'"),
        ((0.9, 0.95), "bytes", b"(0.9, 0.95)"),
    ],
)
def test_a_scalar_becomes_its_bits_or_else_its_representation(value: object, dtype: str, content: bytes) -> None:
    assert number("name", value) == Leaf("name", content, dtype=dtype)


def test_a_number_that_changes_its_kind_is_another_leaf() -> None:
    one, same = (Digester().record(Group.SCHEDULE, [number("steps", value)]).digests for value in (1, 1.0))
    assert one != same
