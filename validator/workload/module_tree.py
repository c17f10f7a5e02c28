"""The modules of one model chunk with their parameters and buffers, walked once and looked at again in passing."""

from __future__ import annotations

from itertools import chain
from operator import is_
from typing import Any, NamedTuple, final

import torch
from torch import Tensor


class Walk(NamedTuple):
    """What PyTorch finds below a module: each module, parameter and buffer once, with its path."""

    modules: list[tuple[str, torch.nn.Module]]
    parameters: list[tuple[str, Tensor]]
    buffers: list[tuple[str, Tensor]]


@final
class ModuleTree:
    """What ``named_modules``, ``named_parameters`` and ``named_buffers`` of ``root`` give, without their walk.

    A walk through a thousand modules takes milliseconds, and every step needs several. Each ``look`` makes sure that
    every module still has the same children, parameters and buffers, by identity and under the same names, and walks
    anew where one has not.
    """

    def __init__(self, root: torch.nn.Module) -> None:
        self._root = root
        self._walk()

    def look(self) -> Walk:
        """What is there now."""
        things = list(chain.from_iterable(map(dict.values, self._full)))
        if (
            any(self._empty)
            or list(chain.from_iterable(self._full)) != self._names
            or len(things) != len(self._things)
            or not all(map(is_, things, self._things))
        ):
            self._walk()
        return self._found

    def _walk(self) -> None:
        self._found = Walk(
            list(self._root.named_modules()), list(self._root.named_parameters()), list(self._root.named_buffers())
        )
        tables = [
            table for _, each in self._found.modules for table in (each._modules, each._parameters, each._buffers)
        ]
        self._empty: list[dict[str, Any]] = [table for table in tables if not table]
        self._full: list[dict[str, Any]] = [table for table in tables if table]
        self._names: list[str] = list(chain.from_iterable(self._full))
        self._things: list[Any] = list(chain.from_iterable(map(dict.values, self._full)))
