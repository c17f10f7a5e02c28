"""The parts of the ``mamba_ssm`` package that Megatron imports, made of the plain PyTorch scan."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from validator.workload.cpu.state_space import GatedRMSNorm, chunk_scan, split_conv_scan

#: Megatron compares the package's version; this one has neither ``state_dtype`` nor the fused extras.
_VERSION = "2.2.4"


def install() -> None:
    """Register the modules, so that ``import mamba_ssm`` finds them."""
    names: dict[str, dict[str, Any]] = {
        "mamba_ssm": {"__version__": _VERSION, "__path__": []},
        "mamba_ssm.ops": {"__path__": []},
        "mamba_ssm.ops.triton": {"__path__": []},
        "mamba_ssm.ops.triton.layernorm_gated": {"RMSNorm": GatedRMSNorm},
        "mamba_ssm.ops.triton.ssd_combined": {
            "mamba_chunk_scan_combined": chunk_scan,
            "mamba_split_conv1d_scan_combined": split_conv_scan,
        },
    }
    for name, attributes in names.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        for attribute, value in attributes.items():
            setattr(module, attribute, value)
        sys.modules[name] = module
