"""A container that code under test cannot do harm from, as far as a container goes (SECURITY.md says how far).

No network but loopback, a root that cannot be written, no capability, no way to gain one, not root, and limits on
memory, processes, CPUs and file sizes.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, final

from validator.errors import LaunchError
from validator.execute.docker_engine import LABEL, Engine
from validator.execute.owner import Owner
from validator.pipeline import Limits

GIBIBYTE = 1 << 30

#: Whom a sandbox runs as where the product runs as root: nobody, by number, since an image may name it otherwise.
NOBODY = 65534

#: Share of the host's memory that a sandbox gets where the pipeline says nothing.
_MEMORY_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Bind:
    """A folder or file of the host inside the sandbox."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """How the first process of a sandbox ended."""

    code: int
    out_of_memory: bool


@dataclass(frozen=True, slots=True)
class Inside:
    """What one sandbox runs: ``command`` in the place of the image's entrypoint.

    ``volumes`` are folders that the image would have as volumes: they are in memory here, and limited like ``/tmp``.
    ``gpus`` is how many it gets: those of ``gpu_names``, or any.
    """

    command: Sequence[str]
    variables: Mapping[str, str]
    binds: Sequence[Bind] = ()
    volumes: Sequence[str] = ()
    gpus: int = 0
    gpu_names: Sequence[str] = ()


def memory_bytes(limits: Limits) -> int:
    """Memory that a sandbox gets, shared memory and scratch folder in memory included."""
    if limits.memory_gibibytes is not None:
        return limits.memory_gibibytes * GIBIBYTE
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * _MEMORY_SHARE)


def user() -> tuple[int, int]:
    """User and group of a sandbox: the product's own, whose files it may write; nobody for root."""
    return (NOBODY, NOBODY) if os.getuid() == 0 else (os.getuid(), os.getgid())


def settings(inside: Inside, limits: Limits, *, lock_memory: bool) -> dict[str, Any]:
    """Arguments of the SDK's ``containers.create``."""
    from docker.types import DeviceRequest, LogConfig, Mount, Ulimit  # noqa: PLC0415

    memory, disk = memory_bytes(limits), limits.disk_gibibytes * GIBIBYTE
    ulimits = [Ulimit(name="core", soft=0, hard=0), Ulimit(name="fsize", soft=disk, hard=disk)]
    if lock_memory:
        ulimits.append(Ulimit(name="memlock", soft=-1, hard=-1))
    mounts = [
        Mount(each.target, str(each.source), type="bind", read_only=not each.writable, propagation="rprivate")
        for each in inside.binds
    ]
    scratch = f"rw,nosuid,nodev,mode=1777,size={limits.scratch_gibibytes}g"
    bound = {each.target for each in inside.binds}
    in_memory = {"/tmp": scratch} | {path: scratch for path in inside.volumes if path.rstrip("/") not in bound}  # noqa: S108
    which = {"device_ids": list(inside.gpu_names)} if inside.gpu_names else {"count": inside.gpus}
    gpus = [DeviceRequest(capabilities=[["gpu"]], **which)] if inside.gpus else []
    return {
        "entrypoint": list(inside.command[:1]),
        "command": list(inside.command[1:]),
        "environment": dict(inside.variables),
        "mounts": mounts,
        "network_mode": "none",
        "hostname": "localhost",
        "read_only": True,
        "tmpfs": in_memory,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "user": "{}:{}".format(*user()),
        "working_dir": "/tmp",  # noqa: S108
        "pids_limit": limits.processes,
        "mem_limit": memory,
        "memswap_limit": memory,
        "nano_cpus": len(os.sched_getaffinity(0)) * 10**9,
        "shm_size": limits.shared_memory_gibibytes * GIBIBYTE,
        "ulimits": ulimits,
        "device_requests": gpus,
        "log_config": LogConfig(type="none"),
        "stdin_open": True,
        "labels": {LABEL: Owner.current().text},
        "init": False,
        "healthcheck": {"test": ["NONE"]},
    }


@final
@dataclass(slots=True)
class Sandbox:
    """One container that was started. ``output`` gets what it prints, on another thread."""

    engine: Engine
    container: Any
    _stream: Any
    _reader: threading.Thread
    _problem: list[BaseException] = field(default_factory=list)

    @classmethod
    def start(cls, engine: Engine, image: str, inside: Inside, limits: Limits, output: Callable[[bytes], None]) -> Self:
        """Create and start. Raises ``LaunchError``; nothing is left behind then.

        Locked memory without a limit is tried where the pipeline asks for it: some hosts refuse, and then it stays
        limited.
        """
        tries = (True, False) if limits.locked_memory else (False,)
        for lock_memory in tries:
            try:
                return cls._start(engine, image, settings(inside, limits, lock_memory=lock_memory), output)
            except LaunchError as error:
                if not lock_memory or "rlimit" not in str(error):
                    raise
        raise AssertionError("unreachable")

    @classmethod
    def _start(cls, engine: Engine, image: str, chosen: dict[str, Any], output: Callable[[bytes], None]) -> Self:
        with engine.speaking("creating a container"):
            container = engine.client.containers.create(image, **chosen)
        try:
            with engine.speaking("starting a container"):
                # Attached before the start, so that nothing is missed; closing its standard input ends it (supervisor).
                wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                stream = engine.client.api.attach_socket(container.id, wanted)
                with contextlib.suppress(AttributeError):
                    stream._sock.settimeout(None)  # noqa: SLF001 - the SDK leaves its own time limit on it
                container.start()
            sandbox = cls(engine, container, stream, threading.Thread(daemon=True))
            sandbox._reader = threading.Thread(target=sandbox._read, args=(output,), daemon=True)
            sandbox._reader.start()
        except BaseException:
            engine.discard(container)
            raise
        return sandbox

    def wait(self, seconds: float) -> Ended | None:
        """How it ended, ``None`` where it still runs after ``seconds``. Raises ``LaunchError``."""
        self._reader.join(seconds)
        if self._problem and isinstance(self._problem[0], OSError) and self._problem[0].errno is not None:
            raise self._problem[0]  # the log cannot be written
        if self._reader.is_alive():
            return None
        with self.engine.speaking("watching the launch"):
            self.container.reload()
            state = self.container.attrs["State"]
            if state["Running"]:  # it closed its output and goes on
                threading.Event().wait(min(seconds, 0.5))
                return None
        return Ended(int(state["ExitCode"]), bool(state["OOMKilled"]))

    def kill(self) -> None:
        """SIGKILL everything in it, and wait until it is gone. Raises ``LaunchError``."""
        import docker  # noqa: PLC0415

        with self.engine.speaking("killing the launch"):
            with contextlib.suppress(docker.errors.APIError):  # it has ended meanwhile
                self.container.kill()
            self.container.wait(timeout=60)
        self._reader.join(10)

    def remove(self) -> None:
        """Remove it, running or not. Raises ``LaunchError`` where the engine does not."""
        with contextlib.suppress(OSError, ValueError):
            self._stream.close()
        with self.engine.speaking("removing the launch's container"):
            self.engine.discard(self.container)
        self._reader.join(10)

    def _read(self, output: Callable[[bytes], None]) -> None:
        from docker.utils.socket import SocketError, frames_iter  # noqa: PLC0415

        try:
            for _, data in frames_iter(self._stream, tty=False):
                output(data)
        except SocketError as error:
            self._problem.append(error)
        except (OSError, ValueError) as error:  # a full disk, or the stream was closed
            self._problem.append(error)
