"""How environments differ: what can change bits first, paths and times never."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings

from tests.environment.samples import CLAIMS, COMPUTATION, HOST
from tests.environment.test_claims import environments
from validator.environment import Environment, Kind, Origin, can_change_bits, difference, from_claims

BEFORE = from_claims(CLAIMS, HOST, COMPUTATION)


def changed(change: Callable[[Any], object]) -> Environment:
    claims = copy.deepcopy(CLAIMS)
    change(claims)
    return from_claims(claims, HOST, COMPUTATION)


def rows(after: Environment) -> list[tuple[str, str, str | None, str | None, bool]]:
    return [(d.kind.value, d.name, d.expected, d.observed, d.can_change_bits) for d in difference(BEFORE, after)]


@settings(deadline=None)
@given(environments)
def test_an_environment_does_not_differ_from_itself(environment: Environment) -> None:
    assert difference(environment, environment) == []


@settings(deadline=None)
@given(environments, environments)
def test_the_other_way_round_the_sides_are_exchanged(one: Environment, other: Environment) -> None:
    there = [(d.kind, d.name, d.expected, d.observed) for d in difference(one, other)]
    back = [(d.kind, d.name, d.observed, d.expected) for d in difference(other, one)]
    assert there == back


def test_a_changed_variable_is_named() -> None:
    after = changed(lambda claims: claims["variables"].update(ATEN_CPU_CAPABILITY="avx2"))
    assert rows(after) == [("variables", "ATEN_CPU_CAPABILITY", "default", "avx2", True)]


def test_what_one_side_lacks_is_none() -> None:
    after = changed(lambda claims: claims["variables"].update(MKL_CBWR="COMPATIBLE"))
    assert rows(after) == [("variables", "MKL_CBWR", None, "COMPATIBLE", True)]


def test_what_can_change_bits_comes_first() -> None:
    def change(claims: Any) -> None:
        claims["variables"]["GLOO_SOCKET_IFNAME"] = "eth0"
        claims["packages"] |= {"torch": "2.13.0", "psutil": "7.0.0"}
        claims["arguments"] |= {"hidden_size": 65, "log_interval": 2}

    assert rows(changed(change)) == [
        ("packages", "torch", "2.14.1", "2.13.0", True),
        ("arguments", "hidden_size", "64", "65", True),
        ("variables", "GLOO_SOCKET_IFNAME", "lo", "eth0", False),
        ("packages", "psutil", "7.2.2", "7.0.0", False),
        ("arguments", "log_interval", "1", "2", False),
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data_path", ["/c"]),
        ("data_cache_path", "x"),
        ("tensorboard_dir", "y"),
        ("save", "z"),
        ("load", "z"),
        ("rank", 1),
        ("master_port", 29500),
        ("exit_duration_in_mins", 5),
        ("timing_log_level", 1),
        ("tokenizer_model", "/somewhere/else"),
    ],
)
def test_paths_and_times_are_passed_over(name: str, value: object) -> None:
    assert rows(changed(lambda claims: claims["arguments"].update({name: value}))) == []


@pytest.mark.parametrize(
    "name", ["normalization", "save_rng", "no_load_rng", "rerun_mode", "position_embedding_type", "attention_backend"]
)
def test_arguments_that_compute_are_not_passed_over(name: str) -> None:
    assert rows(changed(lambda claims: claims["arguments"].update({name: "x"}))) == [
        ("arguments", name, None, "x", True)
    ]


@pytest.mark.parametrize(
    "name",
    ["Torch", "nvidia-cublas", "nvidia-nccl-cu13", "transformer_engine", "mamba-ssm", "numpy", "triton", "python"],
)
def test_packages_that_compute(name: str) -> None:
    assert can_change_bits(Kind.PACKAGES, name)


@pytest.mark.parametrize("name", ["psutil", "pip", "pyyaml", "packaging", "pytest", "filelock"])
def test_packages_that_do_not(name: str) -> None:
    assert not can_change_bits(Kind.PACKAGES, name)


def test_another_machine() -> None:
    host = dataclasses.replace(
        HOST, cpu_model="Intel Xeon", memory_gibibytes=64, kernel="Linux 6.12.0", libc="glibc 2.41"
    )
    found = difference(BEFORE, from_claims(CLAIMS, host, COMPUTATION))
    assert [(d.name, d.can_change_bits, d.origin) for d in found] == [
        ("cpu", True, Origin.OBSERVED),
        ("libc", True, Origin.OBSERVED),
        ("memory GiB", False, Origin.OBSERVED),
        ("kernel", False, Origin.OBSERVED),
    ]


def test_another_computation() -> None:
    after = from_claims(CLAIMS, HOST, COMPUTATION | {"steps": 12, "arguments": ["--y"]})
    assert rows(after) == [("computation", "steps", "10", "12", True)]
