"""Which environment variables belong to an environment's facts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from validator.environment import capture_variables
from validator.environment.variables import variable_changes_bits


@pytest.mark.parametrize(
    "name",
    [
        "ATEN_CPU_CAPABILITY", "MKL_CBWR", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA",
        "CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "CUDA_DEVICE_MAX_CONNECTIONS",
        "CUDNN_DETERMINISTIC", "NCCL_ALGO", "NVTE_FLASH_ATTN", "MAMBA_DETERMINISTIC", "TORCHDYNAMO_DISABLE",
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF", "GLOO_X", "TRITON_CACHE_DIR",
        "PYTHONHASHSEED", "GLIBC_TUNABLES", "NVIDIA_TF32_OVERRIDE", "LD_PRELOAD",
    ],
)  # fmt: skip
def test_captured(name: str) -> None:
    assert capture_variables({name: "1"}) == {name: "1"}


@pytest.mark.parametrize(
    "name",
    [
        "HOME", "PATH", "LANG", "TOKEN", "MASTER_PORT", "RANK", "TORCHELASTIC_RUN_ID", "PYTHONPATH",
        "TORCHINDUCTOR_CACHE_DIR",
    ],
)  # fmt: skip
def test_not_captured(name: str) -> None:
    assert capture_variables({name: "1"}) == {}


def test_in_order_of_their_names() -> None:
    assert list(capture_variables({"OMP_B": "1", "ATEN_Z": "1", "OMP_A": "1"})) == ["ATEN_Z", "OMP_A", "OMP_B"]


def test_names_of_interfaces_devices_and_logs_change_no_bits() -> None:
    assert not variable_changes_bits("NCCL_SOCKET_IFNAME")
    assert not variable_changes_bits("NCCL_DEBUG")
    assert not variable_changes_bits("CUDA_VISIBLE_DEVICES")
    assert variable_changes_bits("NCCL_ALGO")


def test_the_package_needs_the_standard_library_only() -> None:
    code = (
        "import sys; before = set(sys.modules); import validator.environment\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before} - {'validator'}\n"
        "foreign = sorted(name for name in new if name not in sys.stdlib_module_names)\n"
        "sys.exit(', '.join(foreign) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
