"""Which tensors of a checkpoint are known to the recorder, and how little is read to find out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from validator.workload import coverage
from validator.workload.digests import content_of
from validator.workload.state import Leaf


def test_a_tensor_is_known_by_its_place_or_else_by_its_content() -> None:
    state = torch.arange(6.0)
    known = coverage._Known([Leaf("a", state), Leaf("b", b"\x07\x00\x00\x00")])
    assert state[:4] in known  # a view that begins where a leaf does
    assert state.clone() in known
    assert torch.tensor([7], dtype=torch.int32) in known  # of an opaque leaf's bytes
    assert torch.empty(0) in known
    assert state[1:].clone() not in known
    assert state.clone() + 1 not in known
    assert torch.tensor([8], dtype=torch.int32) not in known


def test_a_state_group_of_views_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tensor that lies elsewhere costs the leaves of its own length, once."""
    read: list[str] = []

    def noted(leaf: Leaf) -> Any:
        read.append(leaf.name)
        return content_of(leaf)

    monkeypatch.setattr(coverage, "content_of", noted)
    large = [Leaf(f"large{index}", torch.full((100,), float(index))) for index in range(3)]
    small = [Leaf(f"small{index}", torch.full((2,), float(index))) for index in range(2)]
    known = coverage._Known([*large, *small])
    assert all(leaf.source in known for leaf in (*large, *small))
    assert read == []
    assert torch.full((2,), 1.0) in known
    assert torch.full((2,), 9.0) not in known
    assert read == ["small0", "small1", "", ""]
