"""The clock around the steps: what it writes, from what it is told."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from validator.execute.request import LaunchRequest
from validator.workload import timing


def request(folder: Path, device: str = "cpu", **switches: str) -> LaunchRequest:
    return LaunchRequest(
        device, "reference", (), None, 1, 4, 1, folder / "trajectory", folder, record=False, measure="time",
        switches=switches,
    )  # fmt: skip


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only tests and sleeping move."""
    now = [50.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr("validator.workload.timing.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("validator.workload.timing.time.sleep", sleep)
    monkeypatch.setattr("validator.workload.timing.torch.cuda.synchronize", lambda: None)
    monkeypatch.setattr("validator.workload.megatron_internals.global_batch_size", lambda: 8)
    return now


def train(clock: list[float], made: timing.StepClock, *seconds: float) -> dict[str, Any]:
    for step, taken in enumerate(seconds):
        made.before_step(step)
        clock[0] += taken
    made.on_end()
    content: dict[str, Any] = json.loads((made.request.measurement_file(0)).read_text())
    return content


def test_a_step_is_from_one_entry_to_the_next_and_the_last_one_has_no_end(tmp_path: Path, clock: list[float]) -> None:
    made = timing.StepClock(request(tmp_path), SimpleNamespace(seq_length=64), rank=0)
    found = train(clock, made, 3.0, 1.0, 2.0, 9.0)
    assert found["steps"] == [3.0, 1.0, 2.0]
    assert found["window_seconds"] == 12.0  # from the second entry on: the first step is no like the others
    assert found["tokens_per_step"] == 512
    assert 2**20 < found["peak_memory_bytes"] < 2**40
    assert found["gpu"] is None
    assert found["torch"]["threads"] >= 1
    assert found["busy_seconds"] >= 0


def test_a_known_slowdown_is_that_share_of_every_step(tmp_path: Path, clock: list[float]) -> None:
    made = timing.StepClock(request(tmp_path, slowdown="0.25"), SimpleNamespace(seq_length=64), rank=0)
    assert train(clock, made, 4.0, 8.0, 2.0, 1.0)["steps"] == [5.0, 10.0, 2.5]


#: In the place of nvidia-smi: notes what it is asked, and refuses everything where a name is asked for that it lacks.
NVIDIA_SMI = """\
#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
case "$*" in *{unknown}*) echo 'Field "{unknown}" is not a valid field to query.'; exit 2 ;; esac
echo "1980, 1980, 41, 350.12, 700.00, Disabled, 0, 0, 0x0000000000000004"
"""

STATE = {
    "sm_clock_mhz": 1980.0,
    "sm_clock_max_mhz": 1980.0,
    "temperature_celsius": 41.0,
    "power_watts": 350.12,
    "power_limit_watts": 700.0,
    "mig": "Disabled",
    "corrected_memory_errors": 0.0,
    "uncorrected_memory_errors": 0.0,
    "throttle_reasons": "0x0000000000000004",
}


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An nvidia-smi that answers everything, of the GPU that this process has."""
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI.format(unknown="nothing"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("validator.workload.timing.torch.cuda.current_device", lambda: 3)
    properties = SimpleNamespace(uuid="8a4f")
    monkeypatch.setattr("validator.workload.timing.torch.cuda.get_device_properties", lambda _: properties)
    return program


def asked(program: Path) -> list[str]:
    return program.with_name("asked").read_text().splitlines()


def test_what_nvidia_smi_says_of_this_ranks_gpu(nvidia_smi: Path) -> None:
    assert timing.gpu_state() == STATE
    (question,) = asked(nvidia_smi)
    assert "--id=GPU-8a4f" in question
    assert "clocks_event_reasons.active" in question


def test_a_driver_that_has_the_old_name_only_is_asked_again_by_that(nvidia_smi: Path) -> None:
    nvidia_smi.write_text(NVIDIA_SMI.format(unknown="clocks_event_reasons"))
    assert timing.gpu_state() == STATE
    assert ["clocks_throttle_reasons.active" in question for question in asked(nvidia_smi)] == [False, True]


def test_a_driver_that_does_not_answer_at_all_leaves_nothing(nvidia_smi: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi.write_text("#!/bin/sh\nexit 9\n")
    assert timing.gpu_state() is None
    nvidia_smi.unlink()
    monkeypatch.setenv("PATH", str(nvidia_smi.parent))
    assert timing.gpu_state() is None
