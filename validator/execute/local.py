"""Launches on this machine, under torchrun, each below a supervisor that lets no process outlive it."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import socket
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from validator.environment import Host, observe_host
from validator.errors import LaunchError
from validator.execute import supervisor
from validator.execute.failures import explain
from validator.execute.gpu_packages import DETERMINISTIC_SINCE
from validator.execute.interpreter import Interpreter, find_interpreter
from validator.execute.kit import launch_environment
from validator.execute.launch import Ending, LaunchOutcome, OnProgress, OnWait, StopWhen, Surroundings, Watch
from validator.execute.leftovers import MARK, kill_marked
from validator.execute.request import LaunchRequest, launch_command
from validator.execute.shares import shares
from validator.trajectory.groups import Moment

#: Seconds between two looks at a running launch.
LOOK_EVERY = 0.1

#: Seconds that the supervisor gets to kill everything; SIGKILL takes far less unless a device driver hangs.
KILL_WITHIN = 15.0

#: Below this many free bytes a failed launch is taken to have failed for want of space.
FULL_BELOW = 1 << 20

#: torchrun's store listens here: below the kernel's usual range for outgoing connections, so that none takes it
#: meanwhile.
PORTS = range(20_000, 32_000)

#: Ports that this process lately gave to launches: one that is about to listen there is not seen yet.
_given: deque[int] = deque(maxlen=100)


@final
@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Runs launches on this machine, on all its devices or on the ``gpus`` named. ``look_every`` is in seconds."""

    look_every: float = LOOK_EVERY
    gpus: tuple[str, ...] = ()

    @property
    def observed(self) -> Mapping[str, str]:
        return {}

    @property
    def place(self) -> str:
        return "this machine"

    @property
    def nodes(self) -> int:
        return 1

    def inherited(self) -> Mapping[str, str]:
        """Nothing: what the caller's shell passes on says where things are, not how to compute."""
        return {}

    def host(self) -> Host:
        return observe_host()

    def find_interpreter(self, option: str | None, megatron: Path | None) -> Interpreter:  # noqa: ARG002
        """See ``Executor``. What it lacks is told by the launch."""
        return find_interpreter(option, tuple(DETERMINISTIC_SINCE))

    def side_by_side(self, device: str, ranks: int, launches: int) -> tuple[LocalExecutor, ...]:
        """See ``Executor``."""
        return tuple(replace(self, gpus=gpus) for gpus in shares(device, ranks, launches, self.place))

    def launch(
        self,
        request: LaunchRequest,
        surroundings: Surroundings,
        *,
        log: Path,
        limit_seconds: float,
        watch: Watch | None = None,
        on_progress: OnProgress | None = None,
        stop_when: StopWhen | None = None,
        on_wait: OnWait | None = None,  # noqa: ARG002 - nothing waits here
    ) -> LaunchOutcome:
        """See ``Executor.launch``. When it returns or raises, by Ctrl-C too, no process of the launch is left."""
        started = time.monotonic()
        mark = uuid.uuid4().hex
        try:
            request.scratch.mkdir(parents=True, exist_ok=True)
            request.trajectory.mkdir(parents=True, exist_ok=True)
            file = request.scratch / "request.json"
            request.write(file)
            command = launch_command(surroundings.python, request.ranks, free_port(), file)
            seen = {"CUDA_VISIBLE_DEVICES": ",".join(self.gpus)} if self.gpus else {}
            environment = launch_environment(surroundings) | seen | {MARK: mark}
            process = _start(command, environment, log, request.scratch)
        except OSError as error:
            raise LaunchError(_unwritable(error, log)) from error
        finished: list[Moment] = []

        def look() -> bool:
            """Take in what is new; true when the launch has done all it was started for."""
            new = watch.poll() if watch is not None else []
            finished.extend(new)
            if on_progress is not None:
                on_progress(new)
            return stop_when is not None and stop_when(finished)

        stopped = False
        try:
            while process.poll() is None:
                if look():
                    stopped = True
                    break
                if time.monotonic() - started > limit_seconds:
                    limit = f"{limit_seconds:g} s (policy.limits.launch_seconds)"
                    raise LaunchError(f"The launch did not end within {limit} and was killed; see {log}.")
                _wait(process, self.look_every)
        finally:
            _end(process, log, mark)
        seconds = time.monotonic() - started
        if stopped:
            return LaunchOutcome(Ending.KILLED, seconds, log)
        if process.returncode != 0:
            raise LaunchError(f"The launch failed: {_reason(process.returncode, log, surroundings)}; see {log}.")
        look()
        return LaunchOutcome(Ending.COMPLETED, seconds, log)


def free_port() -> int:
    """A port on which nothing listens now, and that no launch of this process got; raises ``LaunchError`` where none is
    found.
    """
    for port in random.sample(PORTS, 50):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in _given:
            _given.append(port)
            return port
    raise LaunchError(
        f"None of 50 ports between {PORTS[0]} and {PORTS[-1]} is free on 127.0.0.1; close what listens there."
    )


def _start(command: Sequence[str], environment: dict[str, str], log: Path, directory: Path) -> subprocess.Popen[bytes]:
    """Start the supervisor with ``command`` below it. Its standard input is the lifeline: closed when this process
    ends.
    """
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, *command],
            stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT,
            env=environment, cwd=directory, start_new_session=True,
        )  # fmt: skip


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _end(process: subprocess.Popen[bytes], log: Path, mark: str) -> None:
    """Cut the lifeline and wait until the supervisor has killed everything."""
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    try:
        process.wait(KILL_WITHIN)
    except subprocess.TimeoutExpired:
        raise LaunchError(
            f"Processes below {process.pid} did not die within {KILL_WITHIN:g} s of SIGKILL; see {log}."
        ) from None
    if process.returncode < 0:  # the supervisor itself was killed, and could not look after the others
        kill_marked(mark)


def _reason(code: int, log: Path, surroundings: Surroundings) -> str:
    if _free_bytes(log.parent) < FULL_BELOW:
        return f"no space is left on the device that holds {log.parent}"
    return explain(log, code, surroundings.python)


def _free_bytes(directory: Path) -> int:
    try:
        status = os.statvfs(directory)
    except OSError:
        return FULL_BELOW
    return status.f_bavail * status.f_frsize


def _unwritable(error: OSError, log: Path) -> str:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        return f"No space is left for the launch under {log.parent}; free some or change --out."
    return f"The launch cannot be started: {error.strerror} ({error.filename}); change --out or --python."
