"""Keeps one launch's processes together: whatever ends the launch or the product, all of them end.

Run as a file by a bare interpreter, never imported by the product: ``supervisor.py COMMAND…``. Standard input is the
lifeline, a pipe whose other end the product holds. The supervisor adopts every orphan of the command
(PR_SET_CHILD_SUBREAPER), so that ranks and checkpoint writers stay below it even in sessions of their own. When the
lifeline closes, be it on purpose or because the product was killed, or when the command ends, everything below is
killed with SIGKILL, and only then does it exit.

Exit code: the command's own, 128 + signal where a signal ended it, 137 where the lifeline closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_CHILD_SUBREAPER = 36
LIFELINE_CLOSED = 137

#: Only the lifeline decides when a launch is over.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def prctl(option: int, value: int) -> None:
    """Set a property of this process in the kernel; raises ``OSError`` where it refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}, {value})")


def descendants(ancestor: int) -> list[int]:
    """All living processes below ``ancestor``, from one look at /proc."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                # pid (command) state parent …: the command may hold anything, so read after its last parenthesis
                state, parent = file.read().rpartition(b")")[2].split()[:2]
        except OSError:
            continue  # it ended meanwhile
        if state != b"Z":
            parents[int(entry)] = int(parent)
    below: set[int] = set()
    for process in parents:
        lineage = [process]
        while (above := parents.get(lineage[-1])) is not None and above != ancestor and above not in below:
            lineage.append(above)
        if above is not None:
            below.update(lineage)
    return sorted(below)


def reap() -> None:
    """Collect every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def kill_all_below() -> None:
    """SIGKILL everything below this process until nothing is left; orphans come to us, so none can slip away."""
    while processes := descendants(os.getpid()):
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        reap()
        time.sleep(0.005)
    reap()


def start(command: list[str]) -> int:
    """Fork and run ``command`` in a session of its own, with an empty standard input; returns its process id."""
    product = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # should the supervisor itself be killed
        if os.getppid() != product:
            os._exit(LIFELINE_CLOSED)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        for number in (*IGNORED, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"validator: cannot start {command[0]}: {error.strerror}\n".encode())
        os._exit(127)


def supervise(command: list[str]) -> int:
    """Run ``command`` until it ends or the lifeline closes; returns the exit code once nothing is left below."""
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = start(command)
    while True:
        readable, _, _ = select.select([0], [], [], 0.05)
        if readable and not os.read(0, 1):
            kill_all_below()
            return LIFELINE_CLOSED
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return LIFELINE_CLOSED
            if process == child:
                kill_all_below()
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if process == 0:
                break


if __name__ == "__main__":
    sys.exit(supervise(sys.argv[1:]))
