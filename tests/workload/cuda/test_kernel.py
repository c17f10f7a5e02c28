"""The Triton kernel against the definition in NumPy: in Triton's interpreter, and through its real compiler."""

from __future__ import annotations

from pathlib import Path

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workload.cuda.contents import DTYPES, expected, memory, placed
from tests.workload.isolated import isolated


def interpreted_places() -> None:
    from validator.workload.cuda.contents import Contents
    from validator.workload.cuda.launcher import TritonLanes

    contents = list(placed(longest=8200))
    seeds = [11 * index for index in range(len(contents))]
    lanes = torch.zeros((len(contents), 2), dtype=torch.int64)
    TritonLanes()(Contents.of(contents), seeds, lanes)
    assert lanes.tolist() == [expected(content, seed) for content, seed in zip(contents, seeds, strict=True)]


def interpreted_dtypes() -> None:
    from validator.workload.cuda.contents import Contents
    from validator.workload.cuda.launcher import TritonLanes

    sum_lanes = TritonLanes()

    @settings(max_examples=60, deadline=None, database=None)
    @given(
        st.lists(
            st.tuples(st.sampled_from(DTYPES), st.integers(0, 40), st.integers(0, 9), st.integers(0, 2**64 - 1)),
            min_size=1, max_size=6,
        )
    )  # fmt: skip
    def agree(leaves: list[tuple[torch.dtype, int, int, int]]) -> None:
        contents, seeds = [], []
        for dtype, length, start, seed in leaves:
            width = torch.empty(0, dtype=dtype).element_size()
            contents.append(memory((length + start) * width, seed % 2**32)[start * width :])
            seeds.append(seed)
        lanes = torch.zeros((len(leaves), 2), dtype=torch.int64)
        sum_lanes(Contents.of(contents), seeds, lanes)
        assert lanes.tolist() == [expected(content, seed) for content, seed in zip(contents, seeds, strict=True)]

    agree()


def interpreted_pieces() -> None:
    """Leaves of several pieces in any order, a table that is used again, and positions past 2**31 words."""
    import numpy as np

    from validator.trajectory import mixsum
    from validator.workload.cuda import kernel, launcher
    from validator.workload.cuda.contents import Contents
    from validator.workload.cuda.segments import POSITION, cut

    contents = [memory(270_001, 2)[1:], memory(262_144, 3), memory(262_152, 4), torch.empty(0, dtype=torch.uint8)]
    want = [expected(content, 7) for content in contents]
    sum_lanes = launcher.TritonLanes()
    for _ in range(2):
        lanes = torch.zeros((4, 2), dtype=torch.int64)
        sum_lanes(Contents.of(contents), [7] * 4, lanes, "parameters")
        assert lanes.tolist() == want
    contents[1][5] ^= 1  # other bytes at the same place
    sum_lanes(Contents.of(contents), [7] * 4, lanes := torch.zeros((4, 2), dtype=torch.int64), "parameters")
    assert lanes.tolist() == [want[0], expected(contents[1], 7), *want[2:]] != want
    contents[2] = contents[2][:-1]  # another length
    sum_lanes(Contents.of(contents), [7] * 4, lanes := torch.zeros((4, 2), dtype=torch.int64), "parameters")
    assert lanes.tolist()[2] == expected(contents[2], 7)

    small = memory(4096, 5)
    table, _ = cut([small.data_ptr()], [4096], [7], 64)
    shuffled = torch.from_numpy(np.ascontiguousarray(table[[3, 7, 0, 1, 5, 2, 6, 4]]))
    lanes = torch.zeros((1, 2), dtype=torch.int64)
    kernel.sum_lanes[len(shuffled),](shuffled, lanes, ALIGNED=True, BLOCK=16, num_warps=1)
    assert lanes.tolist() == [expected(small, 7)]

    first = 2**31 + 12_345
    table[:, POSITION] += np.array(first * mixsum.STEP % 2**64, np.uint64).view(np.int64)
    lanes = torch.zeros((1, 2), dtype=torch.int64)
    kernel.sum_lanes[len(table),](torch.from_numpy(table), lanes, ALIGNED=True, BLOCK=16, num_warps=1)
    assert [lane % 2**64 for lane in lanes.tolist()[0]] == list(mixsum.lanes(small.numpy(), 7, first))


def compiled_for(*capabilities: str) -> None:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from validator.workload.cuda import kernel

    for capability in capabilities:
        for aligned in (True, False):
            source = ASTSource(
                kernel.sum_lanes,
                {"pieces": "*i64", "lanes": "*i64", "ALIGNED": "constexpr", "BLOCK": "constexpr"},
                {"ALIGNED": aligned, "BLOCK": kernel.BLOCK},
            )
            made = triton.compile(source, target=GPUTarget("cuda", int(capability), 32), options={"num_warps": 4})
            assert made.asm["cubin"]
            assert "atom.global.gpu.relaxed.add.u64" in made.asm["ptx"] or "red.global" in made.asm["ptx"]
            assert "ld.local" not in made.asm["ptx"]  # nothing spilled


def test_every_size_at_every_place_within_a_word() -> None:
    isolated(interpreted_places, variables={"TRITON_INTERPRET": "1"})


def test_any_dtype_length_offset_and_seed_several_leaves_at_once() -> None:
    isolated(interpreted_dtypes, variables={"TRITON_INTERPRET": "1"})


def test_pieces_of_long_leaves_in_any_order() -> None:
    isolated(interpreted_pieces, variables={"TRITON_INTERPRET": "1"})


def test_triton_compiles_it_for_hopper_and_blackwell(tmp_path: Path) -> None:
    isolated(compiled_for, "90", "100", variables={"TRITON_CACHE_DIR": str(tmp_path)})
