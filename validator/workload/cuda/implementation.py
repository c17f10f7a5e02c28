"""Which implementation of ``mixsum`` a launch uses: Triton's kernel where it is sane here, else plain PyTorch.

The Triton that is loaded is the candidate's own, part of what is under test: it must prove itself by known answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from validator.errors import LaunchError
from validator.trajectory.known_answers import KNOWN_ANSWERS, expected_answers
from validator.trajectory.leaves import DIGEST_BYTES, MIXSUM
from validator.trajectory.mixsum import WORD_BYTES
from validator.trajectory.mixsum_words import digests
from validator.workload.cuda.contents import Contents
from validator.workload.cuda.plain import PlainLanes


class SumLanes(Protocol):
    """Adds the lanes of contents, each with its seed, to the rows of an int64 tensor [contents, 2] on the same device.

    Calls with one ``place`` are expected to name the same memory again and again.
    """

    name: str

    def __call__(self, contents: Contents, seeds: Sequence[int], lanes: Tensor, place: Hashable = None) -> None: ...


@dataclass(frozen=True, slots=True)
class Implementation:
    """The chosen one, and why it is not Triton's kernel; empty where it is."""

    sum_lanes: SumLanes
    why: str = ""


def choose(device: torch.device, kernel: Callable[[], SumLanes] | None = None) -> Implementation:
    """The fastest implementation that gives every known answer on ``device``.

    ``kernel`` makes the one that is tried first, Triton's by default. Raises ``LaunchError`` where none is right.
    """
    try:
        first = (kernel or _triton)()
        wrong = wrong_answer(first, device)
        why = f"Triton's kernel gives a wrong digest here ({wrong})" if wrong else ""
    except Exception as error:  # a compiler under test may fail in any way
        first, why = None, f"Triton's kernel does not run here ({_told(error)})"
    if first is not None and not why:
        return Implementation(first)
    plain = PlainLanes()
    if wrong := wrong_answer(plain, device):
        raise LaunchError(f"no digest on {device} can be trusted: {why}, and PyTorch's is wrong as well ({wrong}).")
    return Implementation(plain, why)


def wrong_answer(sum_lanes: SumLanes, device: torch.device) -> str:
    """The first known answer that comes out wrong, and where within a word its content began; empty for none."""
    longest = max(len(content) for _, content, *_ in KNOWN_ANSWERS)
    expected = expected_answers(MIXSUM)
    memory = torch.full((longest + 2 * WORD_BYTES,), 0xA5, dtype=torch.uint8, device=device)
    for offset in range(WORD_BYTES):
        for key, content, *_ in KNOWN_ANSWERS:
            if len(content) == longest and offset not in {0, 3}:
                continue  # a long one at a whole and a cut word is enough
            part = memory[offset : offset + len(content)]
            part.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8)) if content else None
            lanes = torch.zeros((1, 2), dtype=torch.int64, device=device)
            sum_lanes(Contents.of([part]), [key.seed], lanes)
            answer = digests_of(lanes, [key.seed], [len(content)]).hex()
            if answer != expected[key.name]:
                return f"{key.name!r} at byte {offset} of a word"
    return ""


def digests_of(lanes: Tensor, seeds: Sequence[int], sizes: Sequence[int]) -> bytes:
    """Digests from lanes that lie anywhere: int64 [leaves, 2] in, 16 bytes a leaf out."""
    sums = lanes.cpu().numpy().view(np.uint64)
    found = digests(sums, np.array(seeds, np.uint64), np.array(sizes, np.uint64))
    assert len(found) == DIGEST_BYTES * len(sizes)
    return found


def _triton() -> SumLanes:
    from validator.workload.cuda.launcher import TritonLanes

    return TritonLanes()


def _told(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
