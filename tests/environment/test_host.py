"""The machine, and the hardware class."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from tests.environment.samples import H200, HOST
from validator.environment import Gpu, hardware_class, observe_host
from validator.environment.host import cpu_level, parse_cpuinfo, parse_gpus
from validator.errors import UsageError

V2 = frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"})
V3 = V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


@dataclass(frozen=True)
class Shape:
    device: str
    nodes: int = 1
    ranks: int = 2


@pytest.mark.parametrize(
    ("flags", "level"),
    [
        (frozenset({"sse2"}), "x86-64-v1"),
        (V2, "x86-64-v2"),
        (V3, "x86-64-v3"),
        (V3 - {"fma"}, "x86-64-v2"),
        (V4 - {"fma"}, "x86-64-v2"),
        (V4, "x86-64-v4"),
        (V4 - {"avx512vl"}, "x86-64-v3"),
    ],
)
def test_levels(flags: frozenset[str], level: str) -> None:
    assert cpu_level("x86_64", flags) == level


def test_another_architecture_is_its_own_level() -> None:
    assert cpu_level("aarch64", frozenset({"asimd"})) == "aarch64"


def test_cpuinfo_of_two_processors() -> None:
    first = "processor\t: 0\nmodel name\t: AMD  EPYC 9654\nflags\t\t: fpu avx\n\n"
    text = first + "processor\t: 1\nmodel name\t: other\nflags\t: x\n"
    assert parse_cpuinfo(text) == ("AMD EPYC 9654", frozenset({"fpu", "avx"}))
    assert parse_cpuinfo("") == ("unknown", frozenset())


def test_gpus_of_nvidia_smi() -> None:
    line = "NVIDIA H200, 580.65.06, 9.0, 143771\n"
    assert parse_gpus(line * 2) == (H200, H200)
    assert parse_gpus("NVIDIA-SMI has failed\n") == ()


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("x86-64-v4", "cpu-x86-64-v3-1x2"),
        ("x86-64-v3", "cpu-x86-64-v3-1x2"),
        ("x86-64-v2", "cpu-x86-64-v2-1x2"),
        ("aarch64", "cpu-aarch64-1x2"),
    ],
)
def test_class_of_a_cpu_computation(level: str, expected: str) -> None:
    assert hardware_class(Shape("cpu"), dataclasses.replace(HOST, cpu_level=level)) == expected


def test_class_of_a_cuda_computation_is_of_the_gpu_and_not_of_the_cpu() -> None:
    host = dataclasses.replace(HOST, gpus=(H200,))
    assert hardware_class(Shape("cuda", 1, 1), host) == "cuda-nvidia-h200-1x1"
    assert hardware_class(Shape("cpu"), host) == "cpu-x86-64-v3-1x2"
    named = dataclasses.replace(HOST, gpus=(Gpu("NVIDIA A100-SXM4-80GB", "1", "8.0", "1"),))
    assert hardware_class(Shape("cuda", 2, 8), named) == "cuda-nvidia-a100-sxm4-80gb-2x8"


def test_a_cuda_computation_without_a_gpu_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^The pipeline computes on device cuda .*\.$"):
        hardware_class(Shape("cuda"), HOST)


def test_this_machine_can_be_looked_at() -> None:
    host = observe_host()
    assert host.cpus >= 1
    assert host.memory_gibibytes >= 1
    assert host.kernel
    assert observe_host() == host
