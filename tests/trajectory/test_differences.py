from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from validator.trajectory.differences import Kind, group_differences
from validator.trajectory.leaves import LeafKey, LeafTable
from validator.trajectory.record import GroupRecord

ZERO, ONE, TWO = (bytes([value]) * 16 for value in (0, 1, 2))


def record(**leaves: bytes) -> GroupRecord:
    return GroupRecord(LeafTable(tuple(LeafKey(name, "float32", ()) for name in leaves)), b"".join(leaves.values()))


def found(expected: GroupRecord, observed: GroupRecord) -> list[tuple[Kind, str | None, str | None]]:
    return [
        (
            each.kind,
            each.expected.name if each.expected is not None else None,
            each.observed.name if each.observed is not None else None,
        )
        for each in group_differences(expected, observed)
    ]


def test_equal_records_do_not_differ() -> None:
    assert found(record(a=ONE), record(a=ONE)) == []


def test_names_that_swap_their_bits_are_two_changed_leaves() -> None:
    assert found(record(a=ONE, b=TWO), record(a=TWO, b=ONE)) == [(Kind.LEAF, "a", "a"), (Kind.LEAF, "b", "b")]


def test_leaves_with_equal_bits_are_renamed_in_order() -> None:
    assert found(record(a=ZERO, b=ZERO), record(c=ZERO, d=ZERO)) == [
        (Kind.RENAMED, "a", "c"),
        (Kind.RENAMED, "b", "d"),
    ]


def test_a_name_that_stays_is_never_taken_for_a_renamed_one() -> None:
    # b holds a's bits, but b was there before: a is gone, and b changed.
    assert found(record(a=ONE, b=TWO), record(b=ONE)) == [(Kind.MISSING_LEAF, "a", None), (Kind.LEAF, "b", "b")]


def test_a_leaf_of_another_dtype_is_not_renamed() -> None:
    other = GroupRecord(LeafTable((LeafKey("b", "bfloat16", ()),)), ONE)
    assert found(record(a=ONE), other) == [(Kind.MISSING_LEAF, "a", None), (Kind.EXTRA_LEAF, None, "b")]


def test_renamed_leaves_do_not_hide_a_changed_one() -> None:
    assert found(record(a=ONE, b=ONE), record(x=ONE, b=TWO)) == [(Kind.RENAMED, "a", "x"), (Kind.LEAF, "b", "b")]


LEAVES = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([ZERO, ONE, TWO]), max_size=6)


@given(LEAVES, LEAVES)
def test_every_leaf_is_accounted_for(left: dict[str, bytes], right: dict[str, bytes]) -> None:
    differences = group_differences(record(**left), record(**right))
    assert (not differences) is (list(left.items()) == list(right.items()))
    gone = [each for each in differences if each.kind in (Kind.RENAMED, Kind.MISSING_LEAF)]
    new = [each for each in differences if each.kind in (Kind.RENAMED, Kind.EXTRA_LEAF)]
    assert {each.expected.name for each in gone if each.expected} == left.keys() - right.keys()
    assert {each.observed.name for each in new if each.observed} == right.keys() - left.keys()
    changed = {each.expected.name for each in differences if each.kind is Kind.LEAF and each.expected}
    assert changed == {name for name in left.keys() & right.keys() if left[name] != right[name]}
