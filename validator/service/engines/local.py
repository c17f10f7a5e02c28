"""One worker process on this machine, for where there is neither Actions nor Slurm.

The runner outlives the service: after a restart it is found again by the lock that it holds, and its result by what it
left in the attempt's folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import final

from validator.service.engines.model import EngineError, Look, Order, Standing
from validator.service.engines.work import Work

#: How long a runner may take to end its launches, in seconds, before it is killed.
_PATIENCE = 20.0

#: What of the service's own variables a runner sees: no setting, and so no secret.
_INHERITED = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ", "USER")


@final
class LocalEngine:
    """Starts one runner at a time under ``folder``. ``about`` is what every order says besides the attempt."""

    name = "local"
    grace = 0.0
    delay = 0.0
    tokens = True

    def __init__(self, folder: Path, about: Mapping[str, object]) -> None:
        self._folder = folder
        self._about = about

    def has_room(self) -> bool:
        return not any(self._is_held(Work(folder)) for folder in self._folders())

    def find(self, order: Order, since: float) -> str | None:  # noqa: ARG002 - a folder needs no time
        work = self._work(order)
        return order.attempt if self._is_held(work) or work.end.exists() else None

    def hand_over(self, order: Order) -> str:
        work = self._work(order)
        try:
            work.folder.mkdir(parents=True, exist_ok=True)
            work.write(work.order, written(order, self._about))
            work.write(work.token, order.token, mode=0o600)
            self._start(work)
        except OSError as error:
            raise EngineError(f"No worker can be started in {work.folder}: {error.strerror or error}.") from error
        return order.attempt

    def look(self, order: Order, external: str) -> Look:  # noqa: ARG002 - the folder is named by the attempt
        work = self._work(order)
        if self._is_held(work):
            return Look(Standing.RUNNING, last_line(work.progress))
        if end := work.read(work.end):
            return Look(Standing.ENDED, str(end.get("sentence")), bool(end.get("final")))
        if work.report.exists():
            with contextlib.suppress(OSError):
                self._start(work)  # only the push is left to do
                return Look(Standing.RUNNING, "The result is being pushed again.")
        return Look(Standing.LOST, "The worker process ended without a word: killed, or the machine went down.")

    def cancel(self, order: Order, external: str) -> None:  # noqa: ARG002 - the folder is named by the attempt
        work = self._work(order)
        for kill, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, 5.0)):
            until = time.monotonic() + patience
            while self._is_held(work) and time.monotonic() < until:
                self._signal(work, kill)
                time.sleep(0.2)
        if self._is_held(work):
            raise EngineError(f"The worker in {work.folder} does not end.")

    def _start(self, work: Work) -> None:
        with self._locked(work) as lock:
            if lock is None:
                return  # one is at it already
            work.end.unlink(missing_ok=True)
            environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
            with work.log.open("ab") as log:
                subprocess.Popen(
                    [sys.executable, "-m", "validator.service.engines.runner", str(work.folder), str(lock)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, pass_fds=(lock,),
                    cwd=Path(__file__).parents[3], env=environment,
                )  # fmt: skip

    def _work(self, order: Order) -> Work:
        return Work(self._folder / order.attempt)

    def _folders(self) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            yield from (path for path in self._folder.iterdir() if path.is_dir())

    def _is_held(self, work: Work) -> bool:
        if not work.lock.exists():
            return False
        with self._locked(work) as lock:
            return lock is None

    @staticmethod
    @contextmanager
    def _locked(work: Work) -> Iterator[int | None]:
        """The lock's descriptor, ``None`` where another process holds it; a child that inherits it keeps it."""
        descriptor = os.open(work.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield descriptor
        finally:
            os.close(descriptor)

    @staticmethod
    def _signal(work: Work, kill: signal.Signals) -> None:
        with contextlib.suppress(OSError, ValueError):
            number = int(work.runner.read_text())
            if kill is signal.SIGKILL:
                os.killpg(number, kill)
            else:
                os.kill(number, kill)


def written(order: Order, about: Mapping[str, object]) -> dict[str, object]:
    """What the runner reads; the token is not in it."""
    return {
        **about, "attempt": order.attempt, "repository": order.repository, "commit": order.commit,
        "pipeline": order.pipeline, "image": order.image,
    }  # fmt: skip


def last_line(file: Path) -> str:
    """The last line of a small text file; empty where there is none."""
    with contextlib.suppress(OSError):
        lines = file.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:500] if lines else ""
    return ""
