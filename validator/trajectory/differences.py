"""What differs between two records of one group, leaf by leaf. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from enum import StrEnum

from validator.trajectory.leaves import LeafKey
from validator.trajectory.record import GroupRecord


class Kind(StrEnum):
    """In what way two trajectories differ at one place."""

    LEAF = "leaf"  # the same leaf has other bits, or another dtype, shape or shard
    RENAMED = "renamed"  # a leaf with these bits, dtype, shape and shard is there under another name
    REORDERED = "reordered"  # the same leaves with the same bits, listed in another order
    MISSING_LEAF = "missing leaf"
    EXTRA_LEAF = "extra leaf"
    MISSING_GROUP = "missing group"
    EXTRA_GROUP = "extra group"
    LENGTH = "length"  # one trajectory has the moment, the other does not


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """One leaf that differs; the side that lacks it has ``None`` and an empty digest."""

    kind: Kind
    expected: LeafKey | None
    observed: LeafKey | None
    expected_digest: bytes
    observed_digest: bytes


def group_differences(expected: GroupRecord, observed: GroupRecord) -> list[KeyDifference]:
    """All leaves that differ, in the expected table's order; leaves that only the observed side has come last.

    A name that is gone and a name that is new are one ``renamed`` leaf where digest, dtype, shape and shard agree.
    """
    if expected.table is observed.table or expected.table == observed.table:
        keys = expected.table.keys
        pairs = ((key, key, expected.leaf(index), observed.leaf(index)) for index, key in enumerate(keys))
        return [KeyDifference(Kind.LEAF, *pair) for pair in pairs if pair[2] != pair[3]]
    return _by_name(expected, observed)


def _by_name(expected: GroupRecord, observed: GroupRecord) -> list[KeyDifference]:
    there = {key.name: index for index, key in enumerate(observed.table.keys)}
    gone_names = {key.name for key in expected.table.keys}
    new: dict[tuple[object, ...], deque[int]] = defaultdict(deque)
    for name, index in there.items():
        if name not in gone_names:
            new[_bits(observed, index)].append(index)

    found: list[KeyDifference] = []
    moved: KeyDifference | None = None
    for index, key in enumerate(expected.table.keys):
        digest = expected.leaf(index)
        position = there.get(key.name)
        if position is not None:
            other, other_digest = observed.table.keys[position], observed.leaf(position)
            if digest != other_digest or key != other:
                found.append(KeyDifference(Kind.LEAF, key, other, digest, other_digest))
            elif moved is None and position != index:
                moved = KeyDifference(Kind.REORDERED, key, other, digest, other_digest)
        elif same := new.get(_bits(expected, index)):
            other = observed.table.keys[same.popleft()]
            found.append(KeyDifference(Kind.RENAMED, key, other, digest, digest))
        else:
            found.append(KeyDifference(Kind.MISSING_LEAF, key, None, digest, b""))
    found.extend(
        KeyDifference(Kind.EXTRA_LEAF, None, observed.table.keys[index], b"", observed.leaf(index))
        for index in sorted(index for left in new.values() for index in left)
    )
    return found or ([moved] if moved is not None else [])


def _bits(record: GroupRecord, index: int) -> tuple[object, ...]:
    """All that two leaves have in common where one is the other renamed."""
    key = record.table.keys[index]
    return key.dtype, key.shape, key.shard, record.leaf(index)
