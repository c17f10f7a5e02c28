"""Real training on a GPU: a whole check of nemotron-h200, its golden, and what the fastest mode does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import check, validator
from validator.environment import observe_host
from validator.environment.nvml import read_devices

pytestmark = pytest.mark.gpu


def test_nvml_and_nvidia_smi_name_the_same_gpus() -> None:
    host = observe_host()
    assert host.gpus
    assert [gpu.name for gpu in host.gpus] == [device.name for device in read_devices()]
    assert {gpu.driver for gpu in host.gpus} == {device.driver for device in read_devices()}


def test_it_is_repeatable_and_resumes_and_its_recorder_sees(tmp_path: Path) -> None:
    checked = check(tmp_path, "nemotron-h200")
    assert checked.verdict in {"no_baseline", "pass"}, checked.out
    assert (checked.gate("repeatability")["outcome"], checked.gate("resume")["outcome"]) == ("holds", "holds")
    recorder = checked.gate("recorder")
    assert recorder["outcome"] == "holds"
    assert "PyTorch" not in recorder["sentence"]  # Triton's kernel was sane
    assert checked.trajectory("reference").algorithm == "mixsum-128/1"


def test_a_golden_is_matched_by_a_later_run(tmp_path: Path) -> None:
    store = tmp_path / "golden"
    recorded = validator(
        "golden", "record", "nemotron-h200", "--golden", str(store), "--approver", "GPU tests", "--reason", "a test"
    )
    assert recorded.code == 0, recorded.out + recorded.err
    checked = check(tmp_path, "nemotron-h200", "--golden", str(store))
    assert (checked.code, checked.verdict) == (0, "pass"), checked.out
