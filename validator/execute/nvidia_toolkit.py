"""NVIDIA's Container Toolkit: what gives a container its GPUs, and has let images out of theirs."""

from __future__ import annotations

import re
import subprocess

from validator.errors import LaunchError

#: The first version without the known ways out of a container: CVE-2024-0132 is closed since 1.16.2, CVE-2025-23359
#: since 1.17.4, CVE-2025-23266 since 1.17.8 (NVIDIA security bulletins 5582, 5616, 5659).
OLDEST = (1, 17, 8)

_COMMANDS = (("nvidia-ctk", "--version"), ("nvidia-container-cli", "--version"))


def insist_on_toolkit() -> tuple[int, ...]:
    """The toolkit's version; raises ``LaunchError`` where there is none, or it is too old to start images with."""
    wanted = ".".join(map(str, OLDEST))
    for command in _COMMANDS:
        version = _version(command)
        if version is None:
            continue
        if version < OLDEST:
            found = ".".join(map(str, version))
            raise LaunchError(
                f"NVIDIA's Container Toolkit is {found} here, and images can leave their containers through versions "
                f"before {wanted}; update it."
            )
        return version
    raise LaunchError(
        f"NVIDIA's Container Toolkit is not installed here, and gives a container its GPUs; install {wanted} or newer."
    )


def _version(command: tuple[str, ...]) -> tuple[int, ...] | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"version:?\s*v?(\d+)\.(\d+)\.(\d+)", done.stdout)
    return None if found is None else tuple(map(int, found.groups()))
