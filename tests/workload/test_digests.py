"""From leaves to digests: bits count, order counts, and no kept view ever shows old content."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from validator.errors import LaunchError
from validator.trajectory.groups import Group
from validator.trajectory.known_answers import KNOWN_ANSWERS, check_known_answers, expected_answers
from validator.trajectory.leaves import LeafKey
from validator.workload.digests import Digester, content_of, plain_torch
from validator.workload.state import Leaf, number

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int64": torch.int64,
    "uint8": torch.uint8,
    "bool": torch.bool,
}

#: One group whose tensors stay in place, one whose tensors come and go.
KINDS = (Group.PARAMETERS, Group.BATCH)


@pytest.fixture(autouse=True)
def without_torch_functions() -> Iterator[None]:
    """As in a launch."""
    with plain_torch():
        yield


def recomputed(content: bytes, dtype: str, shape: tuple[int, ...], shard: str = "") -> bytes:
    """The leaf's digest by the format's description alone."""
    seed = xxhash.xxh3_64_intdigest(f"{dtype}|{'x'.join(map(str, shape))}|{shard}".encode())
    return xxhash.xxh3_128_digest(content, seed=seed)


@pytest.mark.parametrize("group", KINDS)
@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(DTYPES)), st.lists(st.integers(0, 5), max_size=3), st.data())
def test_a_leaf_is_the_hash_of_its_raw_bytes(group: Group, dtype: str, shape: list[int], data: st.DataObject) -> None:
    count = 1
    for size in shape:
        count *= size
    width = torch.empty(0, dtype=DTYPES[dtype]).element_size()
    content = data.draw(st.binary(min_size=count * width, max_size=count * width))
    if dtype == "bool":
        content = bytes(byte & 1 for byte in content)
    flat = torch.frombuffer(bytearray(content), dtype=DTYPES[dtype]) if count else torch.empty(0, dtype=DTYPES[dtype])
    record = Digester().record(group, [Leaf("weight", flat.view(shape), "0:3/9")])
    assert record.digests == recomputed(content, dtype, tuple(shape), "0:3/9")
    assert record.table.keys == (LeafKey("weight", dtype, tuple(shape), "0:3/9"),)


@pytest.mark.parametrize("group", KINDS)
def test_a_strided_tensor_is_hashed_in_the_order_of_its_elements(group: Group) -> None:
    matrix = torch.arange(12, dtype=torch.float32).view(3, 4)
    digester = Digester()
    expected = matrix.numpy().T.copy().tobytes()
    assert digester.record(group, [Leaf("t", matrix.t())]).digests == recomputed(expected, "float32", (4, 3))
    # The same name and memory, read in the other order.
    square = torch.arange(9, dtype=torch.float32).view(3, 3)
    straight = digester.record(group, [Leaf("s", square)]).digests
    turned = digester.record(group, [Leaf("s", square.t())]).digests
    assert straight == recomputed(square.numpy().tobytes(), "float32", (3, 3))
    assert turned == recomputed(square.numpy().T.copy().tobytes(), "float32", (3, 3))


@pytest.mark.parametrize("group", KINDS)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (0x00000000, 0x80000000),  # +0.0 and −0.0
        (0x7FC00000, 0x7FC00001),  # two payloads of NaN
        (0x7FC00000, 0xFFC00000),  # NaN of either sign
        (0x3F800000, 0x3F800001),  # one unit in the last place
    ],
)
def test_values_that_print_alike_differ_in_bits(group: Group, left: int, right: int) -> None:
    digester = Digester()
    tensor = torch.tensor([1, left, 3], dtype=torch.int64).to(torch.int32).view(torch.float32)
    before = digester.record(group, [Leaf("weight", tensor)])
    tensor.view(torch.int32)[1] = right if right < 1 << 31 else right - (1 << 32)
    after = digester.record(group, [Leaf("weight", tensor)])
    assert before.digest != after.digest


@pytest.mark.parametrize("group", KINDS)
def test_two_rows_that_swap_are_seen(group: Group) -> None:
    tensor = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
    digester = Digester()
    before = digester.record(group, [Leaf("weight", tensor)])
    tensor.copy_(tensor[[1, 0, 2, 3]])
    assert digester.record(group, [Leaf("weight", tensor)]).digest != before.digest
    tensor.copy_(tensor[[1, 0, 2, 3]])
    assert digester.record(group, [Leaf("weight", tensor)]).digest == before.digest


@pytest.mark.parametrize("group", KINDS)
def test_what_is_kept_between_records_never_hides_a_change(group: Group) -> None:
    """In place, by new memory, by another tensor of the name, by a changed dtype, shape, shard or place."""
    digester, fresh = Digester(), Digester
    parameter = torch.nn.Parameter(torch.arange(8, dtype=torch.float32))
    other = torch.full((3,), 2.0)
    leaves = [Leaf("a", parameter, "0:8/8"), Leaf("b", other)]

    def same_as_fresh(changed: list[Leaf]) -> bytes:
        record = digester.record(group, changed)
        expected = fresh().record(group, changed)
        assert record.digests == expected.digests
        assert record.table.keys == expected.table.keys
        return record.digest

    seen = [same_as_fresh(leaves)]
    parameter.detach()[5] = 9.0
    seen.append(same_as_fresh(leaves))
    parameter.data = torch.arange(8, dtype=torch.float32) + 1  # the same object over new memory
    seen.append(same_as_fresh(leaves))
    parameter.data = parameter.data.view(2, 4)  # the same memory in another shape
    seen.append(same_as_fresh(leaves))
    parameter.data = parameter.data.view(torch.int32).view(torch.float32)[1:]  # a part of it
    seen.append(same_as_fresh(leaves))
    seen.append(same_as_fresh([Leaf("a", parameter, "8:16/16"), Leaf("b", other)]))
    seen.append(same_as_fresh([Leaf("a", parameter.detach().view(torch.int32), "8:16/16"), Leaf("b", other)]))
    seen.append(same_as_fresh([Leaf("b", other)]))
    seen.append(same_as_fresh([Leaf("b", other), Leaf("a", other)]))
    seen.append(same_as_fresh([Leaf("a", other), Leaf("b", other)]))
    seen.append(same_as_fresh([Leaf("a", b"opaque"), Leaf("b", other)]))
    seen.append(same_as_fresh([number("a", 1), Leaf("b", other)]))
    seen.append(same_as_fresh([number("a", 1.0), Leaf("b", other)]))
    seen.append(same_as_fresh([]))
    seen.append(same_as_fresh(leaves))
    assert seen.pop() == seen[4]  # the first list again, over what the parameter holds since then
    assert len(set(seen)) == len(seen)


def test_a_square_that_is_transposed_in_its_own_memory_is_seen() -> None:
    parameter = torch.nn.Parameter(torch.arange(9, dtype=torch.float32).view(3, 3))
    digester = Digester()
    before = digester.record(Group.PARAMETERS, [Leaf("a", parameter)])
    parameter.data = parameter.data.t()  # object, memory, dtype and shape stay; only the order of reading changes
    after = digester.record(Group.PARAMETERS, [Leaf("a", parameter)])
    assert after.digests == Digester().record(Group.PARAMETERS, [Leaf("a", parameter)]).digests
    assert after.digests != before.digests


def test_a_renamed_leaf_keeps_its_digest_and_changes_its_groups() -> None:
    tensor = torch.ones(3)
    before = Digester().record(Group.PARAMETERS, [Leaf("old", tensor)])
    after = Digester().record(Group.PARAMETERS, [Leaf("new", tensor)])
    assert before.digests == after.digests
    assert before.digest != after.digest


@pytest.mark.parametrize("group", KINDS)
def test_two_leaves_of_one_name_are_an_error(group: Group) -> None:
    with pytest.raises(LaunchError, match=f"two leaves of the state group {group} have one name"):
        Digester().record(group, [Leaf("a", torch.ones(1)), Leaf("a", torch.zeros(1))])


def test_an_unchanged_group_keeps_its_table() -> None:
    """The writer stores a table once; a new object each step would be stored each step."""
    digester, tensor = Digester(), torch.ones(3)
    first = digester.record(Group.PARAMETERS, [Leaf("a", tensor)])
    tensor.add_(1)
    assert digester.record(Group.PARAMETERS, [Leaf("a", tensor)]).table is first.table


def test_covered_names_are_those_of_the_last_record() -> None:
    digester = Digester()
    assert not digester.covers(Group.PARAMETERS, "a")
    digester.record(Group.PARAMETERS, [Leaf("a", torch.ones(1))])
    assert digester.covers(Group.PARAMETERS, "a")
    assert not digester.covers(Group.BUFFERS, "a")
    digester.record(Group.PARAMETERS, [Leaf("b", torch.ones(1))])
    assert not digester.covers(Group.PARAMETERS, "a")
    assert digester.covers(Group.PARAMETERS, "b")


def test_the_known_answers_hold_for_the_digest_in_use_and_for_tensors() -> None:
    digester = Digester()
    assert check_known_answers(digester.answer) == expected_answers()
    for key, content, answer, _ in KNOWN_ANSWERS:
        if key.dtype in DTYPES and not key.shard:
            tensor = torch.frombuffer(bytearray(content), dtype=DTYPES[key.dtype]).view(key.shape)
            record = Digester().record(Group.PARAMETERS, [Leaf(key.name, tensor, key.shard)])
            assert record.digests.hex() == answer


def test_content_is_the_tensors_own_memory() -> None:
    tensor = torch.zeros(4)
    content = content_of(Leaf("a", tensor))
    tensor[0] = 1.0
    assert bytes(content) == tensor.numpy().tobytes()
