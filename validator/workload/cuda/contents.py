"""The memory of leaves that is to be digested: where it lies on the device, and how long it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Contents:
    """The whole memory of contiguous tensors of any dtype and shape, in their order.

    ``addresses`` and ``sizes`` (in bytes) are what each tensor itself says. They stand beside the tensors because a
    kernel needs nothing else, and asking thousands of tensors anew in every step takes longer than the kernel does.
    """

    tensors: Sequence[Tensor]
    addresses: Sequence[int]
    sizes: Sequence[int]

    @classmethod
    def of(cls, tensors: Sequence[Tensor]) -> Self:
        """Those of ``tensors``, each of which must be contiguous."""
        return cls(tensors, [tensor.data_ptr() for tensor in tensors], [tensor.nbytes for tensor in tensors])

    def flat(self) -> Iterator[Tensor]:
        """Each as a view, uint8 [bytes]."""
        for tensor in self.tensors:
            plain = tensor.detach()
            yield plain.view(-1).view(torch.uint8) if plain.numel() else plain.new_empty(0, dtype=torch.uint8)
