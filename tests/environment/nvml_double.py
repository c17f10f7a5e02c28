"""A double of NVIDIA's binding: the names, arguments and answers of ``pynvml`` (nvidia-ml-py 13), for made-up GPUs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Board:
    """One GPU. ``lacks`` are questions that it answers with ``NVMLError``, as boards without ECC or NVLink do."""

    name: str = "NVIDIA H200"
    uuid: str = "GPU-0b1d1b5e-0000-4000-8000-000000000001"
    mig: int = 0
    ecc: int = 1
    corrected: int = 3
    uncorrected: int = 0
    links: int = 18
    reasons: int = 0
    lacks: frozenset[str] = field(default_factory=frozenset)


class NVMLError(Exception):
    """As the binding raises it."""


class Nvml:
    """The module. ``opened`` counts sessions that are not shut down yet."""

    NVMLError = NVMLError
    NVML_VOLATILE_ECC = 0
    NVML_MEMORY_ERROR_TYPE_CORRECTED = 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_CLOCK_SM = 1
    NVML_TEMPERATURE_GPU = 0
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN = 1
    NVML_DEVICE_MIG_ENABLE = 1
    NVML_NVLINK_MAX_LINKS = 36
    nvmlClocksThrottleReasonGpuIdle = 0x1
    nvmlClocksThrottleReasonSwPowerCap = 0x4
    nvmlClocksThrottleReasonHwSlowdown = 0x8
    nvmlClocksThrottleReasonSwThermalSlowdown = 0x20
    nvmlClocksThrottleReasonHwThermalSlowdown = 0x40
    nvmlClocksThrottleReasonHwPowerBrakeSlowdown = 0x80

    def __init__(self, *boards: Board, driver: bool = True) -> None:
        self.boards = boards
        self.driver = driver
        self.opened = 0

    def nvmlInit(self) -> None:
        if not self.driver:
            raise NVMLError("Driver Not Loaded")
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580.65.06"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Board:
        return self.boards[index]

    def _answer[T](self, board: Board, question: str, answer: T) -> T:
        if question in board.lacks:
            raise NVMLError("Not Supported")
        return answer

    def nvmlDeviceGetName(self, handle: Board) -> str:
        return handle.name

    def nvmlDeviceGetUUID(self, handle: Board) -> bytes:
        return handle.uuid.encode()

    def nvmlDeviceGetMigMode(self, device: Board) -> list[int]:
        return self._answer(device, "mig", [device.mig, 0])

    def nvmlDeviceGetEccMode(self, handle: Board) -> list[int]:
        return self._answer(handle, "ecc", [handle.ecc, handle.ecc])

    def nvmlDeviceGetTotalEccErrors(self, handle: Board, errorType: int, counterType: int) -> int:
        assert counterType == self.NVML_VOLATILE_ECC
        return self._answer(handle, "errors", (handle.corrected, handle.uncorrected)[errorType])

    def nvmlDeviceGetMaxClockInfo(self, handle: Board, type: int) -> int:
        return 1980

    def nvmlDeviceGetClockInfo(self, handle: Board, type: int) -> int:
        return 1755

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: Board) -> int:
        return 700_000

    def nvmlDeviceGetPowerUsage(self, handle: Board) -> int:
        return 412_345

    def nvmlDeviceGetTemperatureThreshold(self, handle: Board, threshold: int) -> int:
        return 89

    def nvmlDeviceGetTemperature(self, handle: Board, sensor: int) -> int:
        return 51

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Board) -> int:
        return handle.reasons

    def nvmlDeviceGetNvLinkState(self, device: Board, link: int) -> int:
        if link >= device.links:
            raise NVMLError("Invalid Argument")
        return 1
