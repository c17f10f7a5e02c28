"""Leaves on a device, captured now and read later. The device is the CPU here; only copies and streams are a GPU's."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import pytest
import torch

from tests.workload.cuda.contents import DTYPES, memory
from validator.errors import LaunchError
from validator.trajectory.groups import Group
from validator.trajectory.known_answers import check_known_answers, expected_answers
from validator.trajectory.leaves import MIXSUM, leaf_digest
from validator.trajectory.record import GroupRecord
from validator.workload.cuda import digester as module
from validator.workload.cuda.contents import Contents
from validator.workload.cuda.digester import DeviceDigester
from validator.workload.cuda.implementation import Implementation
from validator.workload.cuda.plain import PlainLanes
from validator.workload.cuda.transfers import Slot
from validator.workload.digests import content_of, plain_torch
from validator.workload.proofs import flip_and_restore
from validator.workload.state import Leaf, number

CPU = torch.device("cpu")


@pytest.fixture
def digester() -> DeviceDigester:
    return DeviceDigester(CPU, Implementation(PlainLanes()))


def expected(record: GroupRecord, leaves: list[Leaf]) -> bytes:
    keys = record.table.keys
    return b"".join(leaf_digest(key, content_of(leaf), MIXSUM) for key, leaf in zip(keys, leaves, strict=True))


def test_leaves_of_every_kind_get_the_digest_that_the_host_computes_from_their_bytes(digester: DeviceDigester) -> None:
    leaves = [Leaf(str(dtype), memory(240, 1).view(dtype).view(2, -1), "0:3/9") for dtype in DTYPES]
    base = torch.arange(24.0).view(4, 6)
    leaves += [
        number("step", 3), number("rate", 0.1), Leaf("opaque", b"python's generator"), Leaf("empty", torch.empty(0, 3)),
        Leaf("scalar", torch.tensor(-0.0)), Leaf("transposed", base.t()), Leaf("strided", base[:, ::2]),
        Leaf("expanded", base[0, :1].expand(5)), Leaf("reversed", base.flip(0)),
    ]  # fmt: skip
    record = digester.record(Group.OPTIMIZER, leaves)
    assert record.digests == expected(record, leaves)


def test_it_gives_the_known_answers(digester: DeviceDigester) -> None:
    assert check_known_answers(digester.answer) == expected_answers(MIXSUM)


def test_what_is_captured_is_the_state_of_that_moment(digester: DeviceDigester) -> None:
    weight = torch.arange(8.0)
    leaves = [Leaf("weight", weight)]
    before = digester.record(Group.PARAMETERS, leaves).digests
    captured = digester.capture(Group.PARAMETERS, leaves)
    weight += 1
    assert captured().digests == before == captured().digests
    assert digester.record(Group.PARAMETERS, leaves).digests != before


def test_many_groups_share_one_buffer_and_one_copy(monkeypatch: pytest.MonkeyPatch, digester: DeviceDigester) -> None:
    copies: list[Slot] = []
    send = Slot.send

    def counted(slot: Slot) -> None:
        copies.extend([] if slot._sent else [slot])
        send(slot)

    monkeypatch.setattr(Slot, "send", counted)
    groups = {group: [Leaf("a", memory(40, index)), number("n", index)] for index, group in enumerate(Group)}
    captured = {group: digester.capture(group, leaves) for group, leaves in groups.items()}
    digester.send()
    assert len(copies) == len(digester._slots) == 1
    for group, leaves in groups.items():
        record = captured[group]()
        assert record.digests == expected(record, leaves)


def test_a_buffer_that_is_too_small_grows_until_one_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 4)
    digester = DeviceDigester(CPU, Implementation(PlainLanes()))
    sets = [[Leaf(f"{index}", memory(8 * index, index)) for index in range(count)] for count in (3, 3, 9, 1)]
    groups = (Group.PARAMETERS, Group.GRADIENTS, Group.OPTIMIZER, Group.BUFFERS)
    used = []
    for _ in range(3):
        captured = [digester.capture(group, leaves) for group, leaves in zip(groups, sets, strict=True)]
        digester.send()
        used.append(sum(not slot.idle for slot in digester._slots))
        for read, leaves in zip(captured, sets, strict=True):
            assert read().digests == expected(read(), leaves)
    assert used == [3, 1, 1]


def test_reading_one_group_early_leaves_the_others_as_they_were(digester: DeviceDigester) -> None:
    first = [Leaf("a", memory(100, 1))]
    second = [Leaf("b", memory(100, 2))]
    early = digester.capture(Group.PARAMETERS, first)
    assert digester.record(Group.OPTIMIZER, second).digests == expected(
        digester.record(Group.OPTIMIZER, second), second
    )
    assert early().digests == expected(early(), first)


def test_a_flipped_bit_is_seen_and_put_back(digester: DeviceDigester) -> None:
    leaves = [Leaf("a", torch.arange(16, dtype=torch.bfloat16)), Leaf("b", torch.ones(3))]
    before = digester.record(Group.PARAMETERS, leaves)
    for seed in range(20):
        proof = flip_and_restore(
            Group.PARAMETERS, seed, lambda: leaves, lambda some: digester.record(Group.PARAMETERS, some), before
        )
        assert proof["restored"] == proof["before"] != proof["after"]


def test_leaves_with_one_name_are_refused(digester: DeviceDigester) -> None:
    with pytest.raises(LaunchError, match="two leaves of the state group buffers have one name"):
        digester.capture(Group.BUFFERS, [Leaf("a", torch.ones(1)), Leaf("a", torch.ones(1))])


def test_a_tensor_without_plain_memory_is_refused_by_name(digester: DeviceDigester) -> None:
    with pytest.raises(
        LaunchError, match=r"the leaf buffers/mask is a Tensor of layout torch.sparse_coo without plain"
    ):
        digester.capture(Group.BUFFERS, [Leaf("mask", torch.eye(3).to_sparse())])


def test_it_works_without_pytorchs_functions_as_in_a_launch(digester: DeviceDigester) -> None:
    with plain_torch():
        leaves = [Leaf("a", torch.nn.Parameter(torch.ones(5)))]
        record = digester.record(Group.PARAMETERS, leaves)
        assert record.digests == expected(record, leaves)


class Counted(PlainLanes):
    """Notes the addresses and sizes that it was given."""

    def __init__(self) -> None:
        self.seen: list[tuple[list[int], list[int]]] = []

    def __call__(self, contents: Contents, seeds: Sequence[int], lanes: torch.Tensor, place: object = None) -> None:
        self.seen.append((list(contents.addresses), list(contents.sizes)))
        super().__call__(contents, seeds, lanes)


def test_a_kernel_is_given_where_every_leaf_lies_and_how_long_it_is() -> None:
    sums = Counted()
    digester = DeviceDigester(CPU, Implementation(sums))
    weight, bias, empty = torch.ones(3, 4), torch.ones(5, dtype=torch.bfloat16), torch.empty(0, 2)
    digester.record(Group.PARAMETERS, [Leaf("weight", weight), number("n", 1), Leaf("bias", bias), Leaf("none", empty)])
    assert sums.seen == [([weight.data_ptr(), bias.data_ptr(), empty.data_ptr()], [48, 10, 0])]


def test_a_leaf_that_moved_or_became_another_is_seen_as_it_is_now(digester: DeviceDigester) -> None:
    """What is known of a leaf from before is of no use once its tensor says something else."""
    base = torch.arange(16.0)
    square = torch.arange(16.0).view(4, 4)
    states = [
        Leaf("a", base),
        Leaf("a", base.view(torch.int32)),  # other dtype, same memory
        Leaf("a", base.view(2, 8)),  # other shape, same memory
        Leaf("a", base[:8]),  # shorter, same address
        Leaf("a", base[8:]),  # same length, elsewhere
        Leaf("a", base, "0:16/32"),  # another shard
        Leaf("a", square),
        Leaf("a", square.t()),  # same address, dtype and shape, and other bytes in row order
        Leaf("a", square),
        Leaf("a", b"no tensor"),
        Leaf("a", base),
    ]
    for leaf in states:
        record = digester.record(Group.PARAMETERS, [leaf])
        assert record.digests == expected(record, [leaf])
        key = record.table.keys[0]
        assert (key.shard, key.shape) == (leaf.shard, tuple(getattr(leaf.source, "shape", (9,))))


def test_a_tensor_given_other_memory_in_place_is_seen_with_it(digester: DeviceDigester) -> None:
    weight = torch.nn.Parameter(torch.zeros(6))
    leaves = [Leaf("weight", weight)]
    before = digester.record(Group.PARAMETERS, leaves).digests
    weight.data = torch.ones(6)
    record = digester.record(Group.PARAMETERS, leaves)
    assert record.digests == expected(record, leaves) != before


def test_nothing_is_kept_alive_of_what_was_captured(digester: DeviceDigester) -> None:
    weight = torch.zeros(6)
    gone = weakref.ref(weight)
    digester.record(Group.PARAMETERS, [Leaf("weight", weight)])
    del weight
    assert gone() is None


def test_a_copy_in_row_order_lives_until_its_lanes_are_summed() -> None:
    class Late(PlainLanes):
        def __call__(self, contents: Contents, seeds: Sequence[int], lanes: torch.Tensor, place: object = None) -> None:
            torch.full((6, 4), 7.0)  # would take the place of a copy that was let go
            super().__call__(contents, seeds, lanes)

    digester = DeviceDigester(CPU, Implementation(Late()))
    leaves = [Leaf("transposed", torch.arange(24.0).view(4, 6).t())]
    record = digester.record(Group.PARAMETERS, leaves)
    assert record.digests == expected(record, leaves)
