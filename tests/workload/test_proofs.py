"""The recorder's proofs: raw bytes of a picked leaf, and one flipped bit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from validator.execute.request import Sample
from validator.trajectory.groups import Group, Moment
from validator.trajectory.leaves import LeafKey, leaf_digest
from validator.trajectory.record import GroupRecord
from validator.workload.digests import Digester
from validator.workload.proofs import Samples, flip_and_restore
from validator.workload.state import Leaf, number


def tensors() -> list[Leaf]:
    draw = torch.Generator().manual_seed(1)
    return [
        Leaf("weight", torch.randn(3, 4, generator=draw), "0:12/24"),
        Leaf("half", torch.randn(5, generator=draw).bfloat16()),
    ]


def test_the_picked_leafs_bytes_give_its_recorded_digest(tmp_path: Path) -> None:
    leaves, digester = tensors(), Digester()
    record = digester.record(Group.PARAMETERS, leaves)
    for pick, index in ((0, 0), (1, 1), (7, 1), (8317234234, 0)):
        sample = Sample(rank=2, moment="step:3", group="parameters", pick=pick)
        folder = tmp_path / str(pick)
        Samples([sample], 2, folder).hand_over(Moment(3), Group.PARAMETERS, leaves, digester)
        described = json.loads((folder / f"{sample.stem}.json").read_text())
        content = (folder / f"{sample.stem}.bin").read_bytes()
        leaf = described["leaf"]
        key = LeafKey(leaf["name"], leaf["dtype"], tuple(leaf["shape"]), leaf["shard"])
        assert described["index"] == index
        assert key == record.table.keys[index]
        assert leaf_digest(key, content) == record.leaf(index)


def test_nothing_is_handed_over_for_other_ranks_moments_and_groups(tmp_path: Path) -> None:
    sample = Sample(rank=2, moment="step:3", group="parameters", pick=0)
    folder = tmp_path / "samples"
    leaves, digester = tensors(), Digester()
    Samples([sample], 1, folder).hand_over(Moment(3), Group.PARAMETERS, leaves, digester)
    mine = Samples([sample], 2, folder)
    mine.hand_over(Moment(4), Group.PARAMETERS, leaves, digester)
    mine.hand_over(Moment(3), Group.OPTIMIZER, leaves, digester)
    mine.hand_over(Moment(3), Group.PARAMETERS, [], digester)
    assert not folder.exists()


def prove(group: Group, leaves: list[Leaf], seed: int, digester: Digester | None = None) -> dict[str, str]:
    digester = digester or Digester()

    def record(found: list[Leaf]) -> GroupRecord:
        return digester.record(group, found)

    return flip_and_restore(group, seed, lambda: list(leaves), record, record(leaves))


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32 - 1])
@pytest.mark.parametrize("group", [Group.PARAMETERS, Group.BATCH, Group.RNG])
def test_a_flipped_bit_is_seen_and_taken_back(group: Group, seed: int) -> None:
    leaves = tensors()
    before = [leaf.source.clone() for leaf in leaves if isinstance(leaf.source, torch.Tensor)]
    proof = prove(group, leaves, seed)
    assert proof["leaf"] == leaves[seed % 2].name
    assert proof["after"] != proof["before"]
    assert proof["restored"] == proof["before"]
    assert all(torch.equal(leaf.source, kept) for leaf, kept in zip(leaves, before, strict=True))


def test_states_that_are_copies_and_strided_tensors_are_flipped_in_a_copy() -> None:
    strided = torch.arange(12.0).view(3, 4).t()
    for leaves in ([number("steps", 3), Leaf("python", b"state")], [Leaf("strided", strided)]):
        proof = prove(Group.SCHEDULE, leaves, 99)
        assert proof["after"] != proof["before"] == proof["restored"]
    assert torch.equal(strided, torch.arange(12.0).view(3, 4).t())


def test_leaves_without_a_byte_are_never_picked() -> None:
    assert prove(Group.BUFFERS, [], 5) == {}
    assert prove(Group.BUFFERS, [Leaf("empty", torch.empty(0))], 5) == {}
    assert prove(Group.BUFFERS, [Leaf("empty", torch.empty(0)), *tensors()], 0)["leaf"] == "weight"


def test_a_recorder_that_answers_constants_shows_no_change() -> None:
    digester = Digester()
    digester.hash = lambda content, seed: bytes(16)
    proof = prove(Group.PARAMETERS, tensors(), 3, digester)
    assert proof["after"] == proof["before"]
