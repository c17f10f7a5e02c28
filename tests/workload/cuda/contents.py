"""Tensors of every dtype, at any place in memory, and what their digest must be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from validator.trajectory import mixsum

#: Every dtype that a leaf of training can have, fp8 and bool included.
DTYPES = (
    torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2, torch.int64,
    torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip

#: Sizes in bytes around everything that the implementations do in steps: words, blocks, pieces.
SIZES = (0, 1, 2, 7, 8, 9, 15, 16, 17, 64, 1000, 8184, 8191, 8192, 8193, 8200, 16384, 40_001)


def memory(size: int, draw: int) -> Tensor:
    """Random bytes, uint8 [size]."""
    return torch.frombuffer(bytearray(np.random.default_rng(draw).bytes(size + 1)), dtype=torch.uint8)[:size]


def expected(content: Tensor, seed: int) -> list[int]:
    """Both lanes of a flat uint8 tensor by the definition, as int64."""
    lanes = mixsum.lanes(content.cpu().numpy(), seed)
    return [lane - 2**64 if lane >= 2**63 else lane for lane in lanes]


def placed(longest: int = max(SIZES)) -> Iterator[Tensor]:
    """Every size at every place within a word: flat uint8 tensors."""
    whole = memory(longest + 8, 1)
    for size in SIZES:
        if size <= longest:
            for offset in range(8):
                yield whole[offset : offset + size]
