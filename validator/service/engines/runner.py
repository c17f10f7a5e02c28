"""Carries one attempt out: prepares what is to be checked, runs the check, pushes its result.

Started by the local engine, or by Slurm. A runner that is started again on a folder where the check has ended only
pushes. It needs nothing of the web app but this package.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, NoReturn, TextIO

from validator.service.engines.work import Work
from validator.service.results.push import Pushed, Pusher

#: The lines that a preparation may print, and the options that they become.
_PREPARED = {"python": "--python", "megatron": "--megatron"}

#: Between two reports of progress, in seconds.
_INTERVAL = 2.0

_USAGE = 2


class FailedError(Exception):
    """It cannot go on; ``final``: another attempt would end the same."""

    def __init__(self, sentence: str, *, final: bool = False) -> None:
        super().__init__(sentence)
        self.final = final


def main(folder: Path) -> int:
    """Do what the order in ``folder`` says; how it ended is left in ``end.json``."""
    work = Work(folder)
    work.write(work.runner, str(os.getpid()))
    signal.signal(signal.SIGTERM, _terminate)
    order = work.read(work.order)
    token = work.token.read_text(encoding="utf-8")
    pusher = Pusher.of_attempt(str(order["url"]), token, str(order["attempt"]))
    try:
        if not work.report.exists():
            _check(work, order, pusher)
        pushed = pusher.push_until_answered(work.out)
        _end(work, pushed.sentence, final=pushed.is_refused)
        if pushed.is_taken:
            shutil.rmtree(work.out, ignore_errors=True)  # the service has what counts; checkpoints and data are large
            work.token.unlink(missing_ok=True)
    except FailedError as error:
        _end(work, str(error), final=error.final)
        return 3
    except OSError as error:
        _end(work, f"The worker failed: {error.strerror or error}.")
        return 3
    except KeyboardInterrupt:
        _end(work, "Cancelled.")
        return 143
    return 0 if pushed is not Pushed.LOST else 3


def _check(work: Work, order: dict[str, Any], pusher: Pusher) -> None:
    shutil.rmtree(work.out, ignore_errors=True)
    options = [*shlex.split(str(order.get("options") or "")), *_prepare(work, order)]
    words = ["check", str(order["pipeline"]), "--out", str(work.out), *options]
    code, last = _follow(work, [sys.executable, "-m", "validator", *words], Path(str(order["project"])), pusher)
    if not work.report.exists():
        sentence = last.removeprefix("validator: ") or f"The check ended with exit code {code} and no report."
        raise FailedError(sentence, final=code == _USAGE)


def _prepare(work: Work, order: dict[str, Any]) -> list[str]:
    """Options of the check that the preparation's output asks for."""
    command = shlex.split(str(order.get("prepare") or ""))
    if not command:
        return []
    variables = {
        f"VALIDATOR_{name.upper()}": str(order[name]) for name in ("repository", "commit", "image", "pipeline")
    }
    try:
        done = subprocess.run(
            command, cwd=work.folder, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True, check=False,
            stdin=subprocess.DEVNULL, preexec_fn=_die_with_parent,
        )  # fmt: skip
    except OSError as error:
        raise FailedError(f"VALIDATOR_WORKER_PREPARE cannot be run: {error.strerror or error}.", final=True) from error
    if done.returncode != 0:
        raise FailedError(f"VALIDATOR_WORKER_PREPARE ended with exit code {done.returncode}; see {work.log}.")
    options = []
    for line in done.stdout.splitlines():
        name, separator, value = line.partition("=")
        if separator and name in _PREPARED:
            options += [_PREPARED[name], value]
    return options


def _follow(work: Work, command: list[str], folder: Path, pusher: Pusher) -> tuple[int, str]:
    """Run the check and pass its progress on. Gives its exit code and its last line."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "TERM": "dumb"}
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        errors="replace", preexec_fn=_die_with_parent,  # noqa: PLW1509 - a runner has one thread
    )  # fmt: skip
    lines: SimpleQueue[str | None] = SimpleQueue()
    assert process.stderr is not None
    Thread(target=_read, args=(process.stderr, lines), daemon=True).start()
    last, shown, said = "", "", 0.0
    try:
        while True:
            # The newest line is shown once the last one has stood long enough, also where no further line comes.
            try:
                line = lines.get(timeout=None if shown == last else max(0.0, said + _INTERVAL - time.monotonic()))
            except Empty:
                line = ""
            if line is None:
                break
            if line:
                print(line, end="", flush=True)
                last = line.strip() or last
            if last != shown and time.monotonic() - said >= _INTERVAL:
                shown, said = last, time.monotonic()
                work.write(work.progress, last)
                pusher.progress(last)
        return process.wait(), last
    except BaseException:
        process.terminate()  # the check ends its launches
        process.wait()
        raise


def _read(stream: TextIO, lines: SimpleQueue[str | None]) -> None:
    """Hand over each line, then ``None``."""
    for line in stream:
        lines.put(line)
    lines.put(None)


def _end(work: Work, sentence: str, *, final: bool = False) -> None:
    work.write(work.end, {"sentence": sentence, "final": final})
    print(sentence, flush=True)


def _die_with_parent() -> None:
    """The check is told when the runner is gone, however that ended (Linux's PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


def _terminate(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
