"""The GPUs of this machine and the packages that compute on them, as JSON; the exit status is 1 without a GPU.

python benchmarks/gpu/facts.py [--json FILE]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
from importlib import metadata
from pathlib import Path

from validator.environment import observe_host

PACKAGES = (
    "torch", "triton", "megatron-core", "transformer-engine", "mamba-ssm", "causal-conv1d", "flash-attn",
    "nvidia-ml-py",
)  # fmt: skip


def version(name: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def main() -> int:
    """Print what there is."""
    parser = argparse.ArgumentParser(description="GPUs and packages of this machine.")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    host = observe_host()
    found = {
        "cpu": host.cpu_model,
        "gpus": [dataclasses.asdict(gpu) for gpu in host.gpus],
        "devices": [dataclasses.asdict(device) for device in host.devices],
        "packages": {name: version(name) for name in PACKAGES},
    }
    print(json.dumps(found, indent=1))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if host.gpus else 1


if __name__ == "__main__":
    raise SystemExit(main())
