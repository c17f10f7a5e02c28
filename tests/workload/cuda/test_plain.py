"""PyTorch's own operations against the definition in NumPy."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workload.cuda.contents import DTYPES, expected, memory, placed
from validator.trajectory.mixsum import key_of
from validator.workload.cuda.contents import Contents
from validator.workload.cuda.plain import PlainLanes, add_lanes


def test_every_size_at_every_place_within_a_word() -> None:
    contents = list(placed())
    seeds = [11 * index for index in range(len(contents))]
    lanes = torch.zeros((len(contents), 2), dtype=torch.int64)
    PlainLanes()(Contents.of(contents), seeds, lanes)
    assert lanes.tolist() == [expected(content, seed) for content, seed in zip(contents, seeds, strict=True)]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(DTYPES), st.integers(0, 70), st.integers(0, 9), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)
)
def test_any_dtype_length_offset_and_seed(dtype: torch.dtype, length: int, start: int, seed: int, draw: int) -> None:
    width = torch.empty(0, dtype=dtype).element_size()
    tensor = (
        memory((length + start) * width, draw).view(dtype)[start:] if length + start else torch.empty(0, dtype=dtype)
    )
    content = tensor.view(torch.uint8) if tensor.numel() else torch.empty(0, dtype=torch.uint8)
    lanes = torch.zeros((1, 2), dtype=torch.int64)
    PlainLanes()(Contents.of([tensor]), [seed], lanes)
    assert lanes.tolist() == [expected(content, seed)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3000), st.integers(1, 40), st.integers(0, 7))
def test_blocks_of_any_size_give_one_answer(size: int, block: int, offset: int) -> None:
    content = memory(size + offset, 5)[offset:]
    row = torch.zeros(2, dtype=torch.int64)
    add_lanes(content, key_of(9), row, block)
    assert row.tolist() == expected(content, 9)
