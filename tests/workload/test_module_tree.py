"""A model's parameters and buffers are found as PyTorch's own walk finds them, whatever becomes of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from validator.workload.module_tree import ModuleTree


class Block(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.linear = torch.nn.Linear(3, 3, bias=False)
        self.tied = self.linear
        self.register_buffer("mask", None)
        self.register_buffer("scratch", torch.zeros(2), persistent=False)


def model() -> torch.nn.Sequential:
    return torch.nn.Sequential(Block(), Block())


def same(found: list[tuple[str, Any]], walked: Any) -> bool:
    walked = list(walked)
    return [name for name, _ in found] == [name for name, _ in walked] and all(
        one is other for (_, one), (_, other) in zip(found, walked, strict=True)
    )


def assert_as_walked(tree: ModuleTree, root: torch.nn.Module) -> None:
    found = tree.look()
    assert same(found.parameters, root.named_parameters())
    assert same(found.buffers, root.named_buffers())
    assert same(found.modules, root.named_modules())


CHANGES: dict[str, Callable[[torch.nn.Sequential], Any]] = {
    "a parameter in the place of another": lambda root: setattr(
        root[1].linear, "weight", torch.nn.Parameter(torch.ones(3, 3))
    ),
    "a parameter more": lambda root: root[0].norm.register_parameter("more", torch.nn.Parameter(torch.ones(1))),
    "a parameter less": lambda root: delattr(root[1].norm, "bias"),
    "the first parameter of a module that had none": lambda root: root.register_parameter(
        "first", torch.nn.Parameter(torch.ones(1))
    ),
    "a buffer in the place of another": lambda root: setattr(root[0], "scratch", torch.zeros(2)),
    "a buffer in the place of None": lambda root: setattr(root[1], "mask", torch.ones(2)),
    "a buffer under another name": lambda root: root[0]._buffers.__setitem__("moved", root[0]._buffers.pop("scratch")),
    "a module more": lambda root: root.append(Block()),
    "a module in the place of another": lambda root: root.__setitem__(0, Block()),
    "a module less": lambda root: delattr(root[0], "norm"),
}


def test_it_finds_what_pytorch_finds() -> None:
    root = model()
    assert_as_walked(ModuleTree(root), root)
    assert [name for name, _ in ModuleTree(root).look().parameters] == [
        "0.norm.weight", "0.norm.bias", "0.linear.weight", "1.norm.weight", "1.norm.bias", "1.linear.weight",
    ]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_is_seen_at_the_next_look(change: Callable[[torch.nn.Sequential], Any]) -> None:
    root = model()
    tree = ModuleTree(root)
    before = tree.look()
    change(root)
    assert_as_walked(tree, root)
    assert not same([each for kind in before for each in kind], [each for kind in tree.look() for each in kind])


def test_nothing_is_walked_again_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    root = model()
    tree = ModuleTree(root)
    for name in ("named_modules", "named_parameters", "named_buffers"):
        monkeypatch.setattr(torch.nn.Module, name, lambda *_, **__: pytest.fail("walked again"))
    root[0].linear.weight.data.add_(1)  # other bytes in the same place
    assert [len(kind) for kind in tree.look()] == [7, 6, 8]
