"""Stand-ins that let Megatron's own training loop run on a machine without CUDA. Installed only for ``device: cpu``."""

from __future__ import annotations


def install() -> None:
    """Install every stand-in. Call once, before Megatron is imported."""
    from validator.workload.cpu import device, mamba_ssm_modules

    device.install()
    mamba_ssm_modules.install()
