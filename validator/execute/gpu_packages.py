"""Packages that compute on a GPU beside PyTorch, and since when their backward passes can be deterministic."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Versions before these add gradients with atomics and know no other way. mamba-ssm: pull request 827, first in 2.3.0;
#: causal-conv1d: pull request 88, first in 1.6.0 (both seen in the published sources of these versions and of those
#: before them); flash-attn: its backward pass takes the argument ``deterministic`` since 2.4.1.
DETERMINISTIC_SINCE = {"mamba-ssm": (2, 3, 0), "causal-conv1d": (1, 6, 0), "flash-attn": (2, 4, 1)}

#: What NVIDIA's own layers (``spec: megatron``) need, and what for.
LAYERS = {
    "transformer-engine": "fused layers and FP8",
    "mamba-ssm": "Mamba's fused kernels",
    "causal-conv1d": "Mamba's convolution",
}


def without_determinism(versions: Mapping[str, str | None]) -> str:
    """What is wrong with the first package whose backward pass is not deterministic in its version; empty for none.

    ``versions`` are those of the launch's interpreter, by distribution; ``None`` for one that is not installed.
    """
    for name, oldest in DETERMINISTIC_SINCE.items():
        version = versions.get(name)
        found = tuple(map(int, re.findall(r"\d+", version or "")[: len(oldest)]))
        if version is not None and found < oldest:
            wanted = ".".join(map(str, oldest))
            return (
                f"{name} {version} has no deterministic backward pass; accepted is {wanted} or newer: install it in "
                "the environment under test."
            )
    return ""
