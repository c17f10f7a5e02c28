"""Which implementation a launch takes: the kernel only where it gives every known answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest
import torch
from torch import Tensor

from tests.workload.isolated import isolated
from validator.errors import LaunchError
from validator.trajectory import mixsum
from validator.workload.cuda import implementation
from validator.workload.cuda.contents import Contents
from validator.workload.cuda.implementation import choose, wrong_answer
from validator.workload.cuda.plain import PlainLanes

CPU = torch.device("cpu")


class Sane(PlainLanes):
    """What a kernel that works looks like."""

    name = "sane"


class Wrong(PlainLanes):
    """Right but for contents of more than ``beyond`` bytes, or those that do not begin at a whole word."""

    name = "wrong"

    def __init__(self, beyond: int = 10**9, offsets: bool = True) -> None:
        self._beyond, self._offsets = beyond, offsets

    def __call__(self, contents: Contents, seeds: Sequence[int], lanes: Tensor, place: Hashable = None) -> None:
        super().__call__(contents, seeds, lanes)
        for address, size, row in zip(contents.addresses, contents.sizes, lanes, strict=True):
            if size > self._beyond or (not self._offsets and address % 8 and size):
                row[1] += 1


def test_pytorch_gives_every_known_answer_at_every_place() -> None:
    assert wrong_answer(PlainLanes(), CPU) == ""


def interpreted_choice() -> None:
    chosen = choose(CPU)
    assert chosen.sum_lanes.name.startswith("Triton ")
    assert chosen.why == ""


def test_a_sane_triton_is_taken() -> None:
    isolated(interpreted_choice, variables={"TRITON_INTERPRET": "1"})


def test_a_sane_kernel_is_taken_and_nothing_is_said_of_it() -> None:
    chosen = choose(CPU, Sane)
    assert (chosen.sum_lanes.name, chosen.why) == ("sane", "")


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (lambda: Wrong(beyond=1000), "gives a wrong digest here ('bfloat16 long' at byte 0 of a word)"),
        (lambda: Wrong(offsets=False), "gives a wrong digest here ('one byte' at byte 1 of a word)"),
    ],
)
def test_a_kernel_that_is_wrong_somewhere_is_left_for_pytorch(kernel: object, told: str) -> None:
    chosen = choose(CPU, kernel)
    assert (chosen.sum_lanes.name, chosen.why) == ("PyTorch", f"Triton's kernel {told}")


def test_a_kernel_that_does_not_compile_is_left_for_pytorch() -> None:
    def broken() -> Sane:
        raise RuntimeError("ptxas died\nmore lines")

    chosen = choose(CPU, broken)
    assert chosen.sum_lanes.name == "PyTorch"
    assert chosen.why == "Triton's kernel does not run here (RuntimeError: ptxas died)"


def test_without_a_gpu_the_compiled_kernel_does_not_run_and_pytorch_does() -> None:
    # No interpreter here: what a candidate without a working Triton gives.
    chosen = choose(CPU)
    assert chosen.sum_lanes.name == "PyTorch"
    assert chosen.why.startswith("Triton's kernel does not run here (")


def test_nothing_is_recorded_where_pytorch_is_wrong_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementation, "PlainLanes", lambda: Wrong(beyond=4))
    with pytest.raises(LaunchError, match=r"no digest on cpu can be trusted: .*PyTorch's is wrong as well"):
        choose(CPU, lambda: Wrong(beyond=1000))


def test_lanes_become_the_digests_of_the_definition() -> None:
    content = torch.arange(77, dtype=torch.uint8)
    lanes = torch.zeros((1, 2), dtype=torch.int64)
    PlainLanes()(Contents.of([content]), [5], lanes)
    assert implementation.digests_of(lanes, [5], [77]) == mixsum.digest(content.numpy(), 5)
