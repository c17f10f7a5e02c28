"""Starts the Triton kernel: one launch for the leaves that lie at whole words, one for the others."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

from validator.workload.cuda import kernel
from validator.workload.cuda.contents import Contents
from validator.workload.cuda.segments import cut


class TritonLanes:
    """Sums lanes with the kernel. A table of pieces is kept, by ``place``, as long as the leaves lie where they lay."""

    def __init__(self) -> None:
        import triton

        self.name = f"Triton {triton.__version__}"
        self._tables: dict[Hashable, tuple[Any, tuple[Tensor, Tensor]]] = {}

    def __call__(self, contents: Contents, seeds: Sequence[int], lanes: Tensor, place: Hashable = None) -> None:
        """Add each content's lanes to its row of ``lanes``, int64 [contents, 2]."""
        lie = (contents.addresses, contents.sizes, seeds)
        known = self._tables.get(place)
        if known is None or known[0] != lie:
            tables = tuple(torch.from_numpy(table).to(lanes.device) for table in cut(*lie))
            known = (lie, (tables[0], tables[1]))
            if place is not None:
                self._tables[place] = known
        for table, aligned in zip(known[1], (True, False), strict=True):
            if len(table):
                kernel.sum_lanes[len(table),](table, lanes, ALIGNED=aligned, BLOCK=kernel.BLOCK, num_warps=kernel.WARPS)
