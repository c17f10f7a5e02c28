"""Environment variables that can change bits: the one place where they are listed."""

from __future__ import annotations

from collections.abc import Mapping

#: Prefixes of the libraries that choose kernels, algorithms, precisions or orders of summation by variables.
PREFIXES: tuple[str, ...] = (
    "ACCL_",
    "APEX_",
    "ATEN_",
    "BLIS_",
    "CAUSAL_CONV1D_",
    "CUBLAS",
    "CUDA_",
    "CUDNN_",
    "CUTLASS_",
    "DG_",
    "DNNL_",
    "FLASH_ATTENTION_",
    "FLASHINFER_",
    "GLOO_",
    "GOMP_",
    "INDUCTOR_",
    "KMP_",
    "MAMBA_",
    "MEGATRON_",
    "MKL_",
    "NCCL_",
    "NUMEXPR_",
    "NVFUSER_",
    "NVIDIA_TF32_",
    "NVSHMEM_",
    "NVTE_",
    "OMP_",
    "ONEDNN_",
    "OPENBLAS_",
    "PYTORCH_",
    "SHARP_",
    "TE_",
    "TORCH",
    "TRITON_",
    "UB_",
    "UCX_",
    "VECLIB_",
)

#: Further variables by their whole name.
NAMES: frozenset[str] = frozenset(
    {
        "GLIBC_TUNABLES",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "MALLOC_PERTURB_",
        "PYTHONHASHSEED",
        "PYTHONOPTIMIZE",
    }
)

#: Set anew for every launch by torchrun, so that they say nothing about the environment.
_PER_LAUNCH = ("TORCHELASTIC_", "TORCH_NCCL_ASYNC_ERROR_HANDLING")

#: Set by PyTorch itself to a folder named after the user.
_SET_BY_ITSELF = frozenset({"TORCHINDUCTOR_CACHE_DIR"})

#: Endings of variables of the above libraries that name an interface, a device or what is printed, not how it is
#: computed. (What kind of device it is belongs to the hardware class.)
_HARMLESS_ENDINGS = (
    "_IFNAME",
    "_DEBUG",
    "_DEBUG_FILE",
    "_DEBUG_SUBSYS",
    "_LOG_LEVEL",
    "_LOGS",
    "_VERBOSE",
    "_VISIBLE_DEVICES",
    "_SHOW_CPP_STACKTRACES",
)


def capture_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of ``variables`` (such as ``os.environ``) that belong to an environment's facts, by name."""
    return {name: value for name, value in sorted(variables.items()) if _is_captured(name)}


def variable_changes_bits(name: str) -> bool:
    """A captured variable may change bits unless its ending says that it only names an interface or what is printed."""
    return not name.endswith(_HARMLESS_ENDINGS)


def _is_captured(name: str) -> bool:
    if name.startswith(_PER_LAUNCH) or name in _SET_BY_ITSELF:
        return False
    return name in NAMES or name.startswith(PREFIXES)
