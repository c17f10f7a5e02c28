"""The digest on a real GPU, through Triton's real compiler, against the definition in NumPy."""

from __future__ import annotations

import pytest
import torch

from tests.workload.cuda.contents import DTYPES, expected, memory, placed
from validator.trajectory import mixsum
from validator.trajectory.groups import Group
from validator.trajectory.known_answers import check_known_answers, expected_answers
from validator.trajectory.leaves import MIXSUM, leaf_digest
from validator.workload.cuda.contents import Contents
from validator.workload.cuda.digester import DeviceDigester
from validator.workload.cuda.implementation import choose, wrong_answer
from validator.workload.cuda.plain import PlainLanes
from validator.workload.digests import content_of
from validator.workload.state import Leaf

pytestmark = pytest.mark.gpu

CUDA = torch.device("cuda")


@pytest.fixture(scope="module")
def digester() -> DeviceDigester:
    return DeviceDigester(CUDA)


def test_the_kernel_is_taken_and_right() -> None:
    chosen = choose(CUDA)
    assert (chosen.sum_lanes.name.split()[0], chosen.why) == ("Triton", "")


def test_plain_pytorch_is_right_there_as_well() -> None:
    assert wrong_answer(PlainLanes(), CUDA) == ""


def test_every_size_at_every_place_within_a_word() -> None:
    contents = list(placed())
    whole = torch.cat([*contents, torch.zeros(8, dtype=torch.uint8)]).to(CUDA)
    starts, at = [], 0
    for content in contents:
        starts.append(at)
        at += content.numel()
    moved = [whole[start : start + content.numel()] for start, content in zip(starts, contents, strict=True)]
    seeds = [11 * index for index in range(len(contents))]
    lanes = torch.zeros((len(contents), 2), dtype=torch.int64, device=CUDA)
    choose(CUDA).sum_lanes(Contents.of(moved), seeds, lanes)
    assert lanes.tolist() == [expected(content, seed) for content, seed in zip(contents, seeds, strict=True)]


def test_leaves_of_every_dtype_get_the_digest_of_their_bytes(digester: DeviceDigester) -> None:
    leaves = [Leaf(str(dtype), memory(24_000, 1).view(dtype).view(2, -1).to(CUDA)) for dtype in DTYPES]
    leaves += [Leaf("transposed", torch.arange(24.0, device=CUDA).view(4, 6).t()), Leaf("host", torch.ones(3))]
    record = digester.record(Group.OPTIMIZER, leaves)
    keys = record.table.keys
    assert record.digests == b"".join(
        leaf_digest(key, content_of(leaf), MIXSUM) for key, leaf in zip(keys, leaves, strict=True)
    )


def test_it_gives_the_known_answers(digester: DeviceDigester) -> None:
    assert check_known_answers(digester.answer) == expected_answers(MIXSUM)


def test_what_is_captured_is_what_was_there_in_the_order_of_the_stream(digester: DeviceDigester) -> None:
    weight = torch.zeros(50_000_000, device=CUDA)
    digests = []
    for _ in range(5):
        captured = digester.capture(Group.PARAMETERS, [Leaf("weight", weight)])
        digester.send()
        weight += 1  # queued at once, behind the digest
        digests.append(captured)
    found = [captured().digests for captured in digests]
    assert len(set(found)) == 5
    again = torch.full_like(weight, 4.0)
    assert digester.record(Group.PARAMETERS, [Leaf("weight", again)]).digests == found[4]


def test_runs_of_one_content_agree_whatever_the_blocks_order(digester: DeviceDigester) -> None:
    leaves = [Leaf("weight", torch.randn(100_000_000, device=CUDA))]
    assert len({digester.record(Group.PARAMETERS, leaves).digests for _ in range(20)}) == 1


def test_more_than_2_to_the_31_elements(digester: DeviceDigester) -> None:
    size = 2**31 + 12_345
    tensor = torch.zeros(size, dtype=torch.uint8, device=CUDA)
    tensor[-1] = 7
    before = digester.record(Group.BUFFERS, [Leaf("large", tensor)])
    sums = torch.zeros((1, 2), dtype=torch.int64, device=CUDA)
    seed = before.table.keys[0].seed
    PlainLanes()(Contents.of([tensor]), [seed], sums)
    zero, one = (int(lane) % 2**64 for lane in sums[0].tolist())
    length = mixsum.mix(mixsum.key_of(seed) ^ size)
    wanted = mixsum.mix(zero ^ length).to_bytes(8, "little")
    wanted += mixsum.mix(one ^ mixsum.mix((length + mixsum.STEP) % 2**64)).to_bytes(8, "little")
    assert before.digests == wanted
    tensor[2**31 + 5] = 1
    assert digester.record(Group.BUFFERS, [Leaf("large", tensor)]).digests != wanted
