"""One timed launch at a time on each device of a host, over all users and checkouts.

The lock is the kernel's (``flock``) on a file that is never removed, so that it ends with its process.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from validator.errors import LaunchError
from validator.pipeline import Device

#: Seconds that a timed launch waits for its devices before it gives up.
WAIT_SECONDS = 3600.0

_LOOK_EVERY = 0.2


#: All GPUs of the host: held alone by a launch that may see all of them, and together by those that see some.
_ALL_GPUS = "cuda-all"


def device_names(device: Device, variables: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What a launch has to itself: the host's CPU, or the GPUs that ``variables``, the launch's own, let it see; in the
    order in which all lock them.
    """
    if device is Device.CPU:
        return ("cpu",)
    seen = variables.get("CUDA_VISIBLE_DEVICES")
    if seen is None:
        return (_ALL_GPUS,)
    return tuple(
        sorted({f"cuda-{''.join(c for c in name if c.isalnum())}" for name in seen.split(",") if name.strip()})
    )


@contextmanager
def device_lock(
    names: Sequence[str],
    *,
    directory: Path | None = None,
    wait_seconds: float = WAIT_SECONDS,
    on_wait: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """Hold the lock of every device in ``names``; ``on_wait`` is called once for each that another check holds.

    Raises ``LaunchError`` where a device stays taken for ``wait_seconds``.
    """
    folder = directory or Path(tempfile.gettempdir())
    modes = dict.fromkeys(names, fcntl.LOCK_EX)
    if any(name.startswith("cuda-") for name in names):
        modes = {_ALL_GPUS: fcntl.LOCK_SH, **modes}
    held: list[int] = []
    try:
        for name, mode in modes.items():
            file = folder / f"megatron-change-validator-{name}.lock"
            descriptor = _open(file)
            held.append(descriptor)
            _acquire(descriptor, mode, file, name, wait_seconds, on_wait)
        yield
    finally:
        for descriptor in held:
            os.close(descriptor)


def _open(file: Path) -> int:
    """Open the lock file for reading, which is enough for ``flock`` and for every user; create it where it is
    missing.
    """
    try:
        while True:
            try:
                return os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except FileNotFoundError:
                pass
            try:
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444))
            except FileExistsError:
                continue
    except OSError as error:
        raise LaunchError(
            f"The device lock {file} cannot be opened ({error.strerror}); remove it or set TMPDIR."
        ) from error


def _acquire(
    descriptor: int, mode: int, file: Path, name: str, wait_seconds: float, on_wait: Callable[[str], None]
) -> None:
    deadline = time.monotonic() + wait_seconds
    told = False
    while True:
        try:
            fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not told:
                on_wait(name)
                told = True
            if time.monotonic() > deadline:
                raise LaunchError(
                    f"Another check has timed launches on {name} for {wait_seconds:g} s ({file}); wait for it to end."
                ) from None
            time.sleep(_LOOK_EVERY)
