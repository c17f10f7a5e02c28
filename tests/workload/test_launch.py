"""What a launch refuses by itself, since only it sees what is installed where it runs."""

from __future__ import annotations

from importlib import metadata
from types import SimpleNamespace
from typing import Any

import pytest

from validator.errors import LaunchError
from validator.workload import launch

INSTALLED = {"mamba-ssm": "2.2.6.post3", "causal-conv1d": "1.6.0"}


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name not in INSTALLED:
            raise metadata.PackageNotFoundError(name)
        return INSTALLED[name]

    monkeypatch.setattr(metadata, "version", version)


def request(device: str, spec: str) -> Any:
    return SimpleNamespace(device=device, spec=spec)


def test_a_package_without_a_deterministic_backward_pass_ends_the_launch() -> None:
    with pytest.raises(LaunchError, match=r"^mamba-ssm 2\.2\.6\.post3 has no deterministic backward pass; accepted is"):
        launch._refuse_packages(request("cuda", "megatron"))


@pytest.mark.parametrize(("device", "spec"), [("cpu", "megatron"), ("cuda", "reference")])
def test_it_matters_only_where_it_computes(device: str, spec: str) -> None:
    launch._refuse_packages(request(device, spec))
