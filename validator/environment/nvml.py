"""What NVIDIA's management library says about this machine's GPUs. Needs the package ``nvidia-ml-py`` and a driver.

Without either, nothing is known and nothing fails: names, driver and compute capability come from nvidia-smi as well.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: Distribution and module of NVIDIA's own binding.
PACKAGE, MODULE = "nvidia-ml-py", "pynvml"

#: Reasons for which clocks are below their maximum, as bits of NVML's mask (``nvmlClocksThrottleReason…``, which
#: nvidia-smi prints as well); a GPU that idles or runs at clocks that somebody set is not held back.
THROTTLING = {
    0x04: "power limit",  # SwPowerCap
    0x08: "hardware slowdown",  # HwSlowdown
    0x20: "temperature",  # SwThermalSlowdown
    0x40: "temperature (hardware)",  # HwThermalSlowdown
    0x80: "power brake",  # HwPowerBrakeSlowdown
}


def throttling(mask: int) -> tuple[str, ...]:
    """What holds a GPU's clocks back, by NVML's mask of throttle reasons."""
    return tuple(words for bit, words in THROTTLING.items() if mask & bit)


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """One GPU. What NVML did not answer is ``unknown``, or ``None`` for a number.

    ``identity`` is a hash of its UUID: enough to tell machines apart, and no serial number to publish. ``mig`` and
    ``ecc`` are ``on`` or ``off``. ``corrected`` and ``uncorrected`` count memory errors since the driver was loaded.
    """

    index: int
    name: str
    identity: str
    driver: str
    mig: str
    ecc: str
    sm_clock_max_mhz: int | None
    power_limit_watts: float | None
    slowdown_celsius: int | None
    nvlinks: int
    corrected: int | None
    uncorrected: int | None
    sm_clock_mhz: int | None
    temperature_celsius: int | None
    power_watts: float | None
    throttling: tuple[str, ...]

    @property
    def stable(self) -> dict[str, object]:
        """What stays the same from launch to launch, by name, as facts of an environment."""
        return {
            "identity": self.identity,
            "MIG": self.mig,
            "ECC": self.ecc,
            "NVLinks": self.nvlinks,
            "SM clock limit MHz": self.sm_clock_max_mhz,
            "power limit W": self.power_limit_watts,
            "slowdown at C": self.slowdown_celsius,
        }


#: Names of facts above that cannot change bits: which of two equal boards it is, and how fast it may run.
HARMLESS = ("identity", "ECC", "SM clock limit MHz", "power limit W", "slowdown at C")


def read_devices(load: Callable[[], Any] | None = None) -> tuple[GpuDevice, ...]:
    """All GPUs of this machine; empty without the package, without a driver, or where NVML does not answer.

    ``load`` gives the binding's module.
    """
    try:
        nvml = (load or _module)()
        nvml.nvmlInit()
    except Exception:  # a binding without a driver raises errors of its own making
        return ()
    try:
        return tuple(_device(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))
    except nvml.NVMLError:
        return ()
    finally:
        nvml.nvmlShutdown()


def memory_errors_between(before: tuple[GpuDevice, ...], after: tuple[GpuDevice, ...]) -> str:
    """A sentence about GPUs whose counts of memory errors moved; empty where none did."""
    earlier = {device.identity: device for device in before}
    moved = []
    for device in after:
        first = earlier.get(device.identity)
        if first is None:
            continue
        for kind, old, new in (
            ("corrected", first.corrected, device.corrected),
            ("uncorrected", first.uncorrected, device.uncorrected),
        ):
            if old is not None and new is not None and new != old:
                moved.append(f"GPU {device.index} ({device.name}) counted {new - old} {kind} memory errors (ECC)")
    return "; ".join(moved)


def _module() -> Any:
    return importlib.import_module(MODULE)


def _device(nvml: Any, index: int) -> GpuDevice:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(question: Callable[..., Any], *words: Any) -> Any:
        """The answer, ``None`` where this GPU or driver has none."""
        try:
            return question(handle, *words)
        except nvml.NVMLError:
            return None

    def errors(kind: int) -> int | None:
        return _whole(ask(nvml.nvmlDeviceGetTotalEccErrors, kind, nvml.NVML_VOLATILE_ECC))

    mig, ecc = ask(nvml.nvmlDeviceGetMigMode), ask(nvml.nvmlDeviceGetEccMode)
    reasons = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons) or 0
    links = (ask(nvml.nvmlDeviceGetNvLinkState, link) for link in range(nvml.NVML_NVLINK_MAX_LINKS))
    return GpuDevice(
        index=index,
        name=_text(ask(nvml.nvmlDeviceGetName)),
        identity=_hashed(_text(ask(nvml.nvmlDeviceGetUUID))),
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        mig=_switch(mig, nvml.NVML_DEVICE_MIG_ENABLE),
        ecc=_switch(ecc, 1),
        sm_clock_max_mhz=_whole(ask(nvml.nvmlDeviceGetMaxClockInfo, nvml.NVML_CLOCK_SM)),
        power_limit_watts=_watts(ask(nvml.nvmlDeviceGetEnforcedPowerLimit)),
        slowdown_celsius=_whole(ask(nvml.nvmlDeviceGetTemperatureThreshold, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)),
        nvlinks=sum(state == 1 for state in links),
        corrected=errors(nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
        uncorrected=errors(nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        sm_clock_mhz=_whole(ask(nvml.nvmlDeviceGetClockInfo, nvml.NVML_CLOCK_SM)),
        temperature_celsius=_whole(ask(nvml.nvmlDeviceGetTemperature, nvml.NVML_TEMPERATURE_GPU)),
        power_watts=_watts(ask(nvml.nvmlDeviceGetPowerUsage)),
        throttling=throttling(reasons),
    )


def _text(answer: Any) -> str:
    if answer is None:
        return "unknown"
    return answer.decode(errors="replace") if isinstance(answer, bytes) else str(answer)


def _whole(answer: Any) -> int | None:
    return None if answer is None else int(answer)


def _watts(milliwatts: Any) -> float | None:
    return None if milliwatts is None else round(int(milliwatts) / 1000, 1)


def _switch(answer: Any, on: int) -> str:
    """The current one of a pair (current, pending)."""
    if answer is None:
        return "unknown"
    return "on" if answer[0] == on else "off"


def _hashed(uuid: str) -> str:
    return hashlib.sha256(uuid.encode()).hexdigest()[:16]
