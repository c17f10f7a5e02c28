"""GPUs as NVML tells of them, with a double of its binding; and its names as the real binding has them, where it is."""

from __future__ import annotations

import dataclasses
import inspect
from types import SimpleNamespace

import pynvml
import pytest

from tests.environment.nvml_double import Board, Nvml
from tests.environment.samples import CLAIMS, COMPUTATION, H200, HOST
from validator.environment import difference, from_claims, hardware_class
from validator.environment.facts import Kind
from validator.environment.nvml import THROTTLING, GpuDevice, memory_errors_between, read_devices
from validator.errors import LaunchError
from validator.execute.nvml_watch import no_memory_errors
from validator.pipeline import Device


def devices(*boards: Board) -> tuple[GpuDevice, ...]:
    return read_devices(lambda: Nvml(*boards))


def test_a_gpu_with_all_that_is_known_of_it() -> None:
    nvml = Nvml(Board(reasons=0x1 | 0x4 | 0x20))
    (device,) = read_devices(lambda: nvml)
    assert nvml.opened == 0
    assert dataclasses.asdict(device) == {
        "index": 0, "name": "NVIDIA H200", "identity": device.identity, "driver": "580.65.06", "mig": "off",
        "ecc": "on", "sm_clock_max_mhz": 1980, "power_limit_watts": 700.0, "slowdown_celsius": 89, "nvlinks": 18,
        "corrected": 3, "uncorrected": 0, "sm_clock_mhz": 1755, "temperature_celsius": 51, "power_watts": 412.3,
        "throttling": ("power limit", "temperature"),
    }  # fmt: skip


def test_the_uuid_is_hashed_and_tells_boards_apart() -> None:
    one, other = devices(Board(), Board(uuid="GPU-2"))
    assert one.identity != other.identity
    assert "0b1d1b5e" not in one.identity
    assert len(one.identity) == 16


def test_what_a_board_does_not_answer_is_unknown_and_no_error() -> None:
    (device,) = devices(Board(lacks=frozenset({"mig", "ecc", "errors"}), links=0))
    assert (device.mig, device.ecc, device.corrected, device.nvlinks) == ("unknown", "unknown", None, 0)


def test_without_the_package_or_a_driver_nothing_is_known() -> None:
    def missing() -> object:
        raise ModuleNotFoundError("No module named 'pynvml'")

    assert read_devices(missing) == ()
    assert read_devices(lambda: Nvml(Board(), driver=False)) == ()


def test_stable_facts_go_into_the_environment_and_momentary_ones_do_not() -> None:
    host = dataclasses.replace(HOST, gpus=(H200,), devices=devices(Board()))
    facts = from_claims(CLAIMS, host, COMPUTATION).facts[Kind.HARDWARE]
    assert facts["gpu 0 NVLinks"].value == "18"
    assert facts["gpu 0 MIG"].value == "off"
    assert facts["gpu 0 power limit W"].value == "700.0"
    assert not any("temperature" in name or "throttl" in name for name in facts)


@pytest.mark.parametrize(
    ("other", "name", "bits"),
    [
        (Board(uuid="GPU-2"), "gpu 0 identity", False),
        (Board(ecc=0), "gpu 0 ECC", False),
        (Board(links=12), "gpu 0 NVLinks", True),
        (Board(mig=1), "gpu 0 MIG", True),
    ],
)
def test_another_board_is_no_cause_of_other_bits_but_another_topology_may_be(
    other: Board, name: str, bits: bool
) -> None:
    before, after = (
        from_claims(CLAIMS, dataclasses.replace(HOST, gpus=(H200,), devices=devices(board)), COMPUTATION)
        for board in (Board(), other)
    )
    (found,) = difference(before, after)
    assert (found.name, found.can_change_bits) == (name, bits)


@dataclasses.dataclass(frozen=True)
class OneGpu:
    device: str = Device.CUDA
    nodes: int = 1
    ranks: int = 1


def test_a_gpu_cut_into_instances_is_a_hardware_class_of_its_own() -> None:
    whole = dataclasses.replace(HOST, gpus=(dataclasses.replace(H200, mig="Disabled"),))
    cut = dataclasses.replace(HOST, gpus=(dataclasses.replace(H200, mig="Enabled"),))
    silent = dataclasses.replace(HOST, gpus=(H200,))
    classes = [hardware_class(OneGpu(), host) for host in (whole, silent, cut)]
    assert classes == ["cuda-nvidia-h200-1x1", "cuda-nvidia-h200-1x1", "cuda-nvidia-h200-mig-1x1"]


def test_counters_that_stand_still_say_nothing() -> None:
    before = devices(Board(), Board(uuid="GPU-2", lacks=frozenset({"errors"})))
    assert memory_errors_between(before, before) == ""
    assert memory_errors_between((), before) == ""


def reader(*looks: tuple[GpuDevice, ...]) -> object:
    answers = iter(looks)
    return lambda: next(answers)


def test_memory_errors_during_a_launch_are_a_hardware_fault() -> None:
    looks = devices(Board()), devices(Board(corrected=5, uncorrected=1))
    with pytest.raises(LaunchError) as caught, no_memory_errors("cuda", reader(*looks)):
        pass
    assert str(caught.value) == (
        "Hardware fault: GPU 0 (NVIDIA H200) counted 2 corrected memory errors (ECC); GPU 0 (NVIDIA H200) counted 1 "
        "uncorrected memory errors (ECC) during the launch, so its bits say nothing about the software; look after "
        "this machine."
    )


def test_a_launch_that_failed_for_it_names_both() -> None:
    looks = devices(Board()), devices(Board(uncorrected=1))
    both = pytest.raises(LaunchError, match=r"^Hardware fault: .* as well: The launch failed: it crashed\.$")
    with both, no_memory_errors("cuda", reader(*looks)):
        raise LaunchError("The launch failed: it crashed.")


def test_a_sound_gpu_changes_nothing() -> None:
    looks = devices(Board()), devices(Board())
    with no_memory_errors("cuda", reader(*looks)):
        pass
    with pytest.raises(LaunchError, match=r"^it crashed$"), no_memory_errors("cuda", reader(*looks)):
        raise LaunchError("it crashed")


def test_a_launch_on_the_cpu_looks_at_no_gpu() -> None:
    with no_memory_errors("cpu", reader()):
        pass


def test_a_check_whose_gpu_counts_errors_is_an_error_with_that_reason(
    project: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import contextmanager

    @contextmanager
    def faulty(device: str, **_: object) -> object:
        looks = devices(Board()), devices(Board(corrected=4))
        with no_memory_errors("cuda", reader(*looks)):
            yield

    monkeypatch.setattr("validator.check.launches.no_memory_errors", faulty)
    checked = project.check()  # type: ignore[attr-defined]
    assert (checked.code, checked.verdict) == (3, "error")
    assert "Hardware fault: GPU 0 (NVIDIA H200) counted 1 corrected memory errors" in checked.gate("golden")["sentence"]


def test_the_doubles_names_are_those_of_the_real_binding() -> None:
    for name, value in inspect.getmembers(Nvml):
        if name.startswith("nvml") and callable(value):
            asked = list(inspect.signature(value).parameters)[1:]
            assert list(inspect.signature(getattr(pynvml, name)).parameters)[: len(asked)] == asked, name
        elif name.startswith(("NVML_", "nvmlClocks")):
            assert getattr(pynvml, name) == value, name


def test_the_reasons_are_the_bits_of_the_real_binding() -> None:
    names = "SwPowerCap", "HwSlowdown", "SwThermalSlowdown", "HwThermalSlowdown", "HwPowerBrakeSlowdown"
    assert [getattr(pynvml, f"nvmlClocksThrottleReason{name}") for name in names] == list(THROTTLING)


def test_the_real_binding_without_a_driver_knows_nothing() -> None:
    def without_driver() -> object:
        return SimpleNamespace(**{**vars(pynvml), "nvmlInit": refuse})

    def refuse() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    assert read_devices(without_driver) == ()
