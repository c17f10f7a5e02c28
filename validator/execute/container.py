"""Launches inside a candidate image, which gets nothing of ours but our workload side, read-only."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from validator.environment import Host, observe_host
from validator.errors import LaunchError
from validator.execute.bounded_log import BoundedLog
from validator.execute.docker_engine import Engine
from validator.execute.failures import explain
from validator.execute.image import Image
from validator.execute.interpreter import Interpreter
from validator.execute.kit import owned_variables
from validator.execute.launch import Ending, LaunchOutcome, OnProgress, OnWait, StopWhen, Surroundings, Watch
from validator.execute.mirror import Mirror
from validator.execute.request import LaunchRequest, launch_command
from validator.execute.sandbox import GIBIBYTE, Bind, Ended, Inside, Sandbox, memory_bytes, user
from validator.execute.shares import shares, visible_gpus
from validator.execute.untrusted import ForgedError, remove_tree, used_bytes
from validator.pipeline import Limits
from validator.report.text import counted, printable
from validator.trajectory.groups import Moment

#: Seconds between two looks at a running launch.
LOOK_EVERY = 0.1

#: Where things are inside, whatever the host calls them.
ROOT = Path("/validator")
KIT, MEGATRON, DATA, LOAD, LAUNCH = (ROOT / name for name in ("kit", "megatron", "data", "load", "launch"))
REQUEST = ROOT / "request.json"
CHECKPOINTS = LAUNCH / "checkpoints"

#: Below a sandbox's own network, every port is free.
_PORT = 29400


@final
@dataclass(slots=True)
class ContainerExecutor:
    """Runs launches in ``image``. ``binds`` are folders of the host that it gets read-only under their own names."""

    engine: Engine
    image: Image
    limits: Limits
    binds: Sequence[Path] = ()
    look_every: float = LOOK_EVERY
    gpus: tuple[str, ...] = ()

    @property
    def observed(self) -> Mapping[str, str]:
        """What was seen of the image from outside."""
        return self.image.facts

    def host(self) -> Host:
        """This machine: a container computes with its processors and its kernel."""
        return observe_host()

    def find_interpreter(self, option: str | None, megatron: Path | None) -> Interpreter:
        """The image's Python. Raises ``LaunchError`` with all that the image lacks."""
        from validator.execute.image_doctor import insist  # noqa: PLC0415 - asks the image through this module

        return insist(self.engine, self.image, option, self.binds, self.limits, megatron)

    @property
    def place(self) -> str:
        return f"the image {self.image.name}"

    @property
    def nodes(self) -> int:
        return 1

    def inherited(self) -> Mapping[str, str]:
        """Variables that the image sets."""
        return self.image.variables

    def side_by_side(self, device: str, ranks: int, launches: int) -> tuple[ContainerExecutor, ...]:
        """See ``Executor``. The engine is on this machine, whose memory they share where the policy limits none."""
        limits, each = self.limits, memory_bytes(self.limits) // GIBIBYTE // launches
        if limits.memory_gibibytes is None and each:
            limits = replace(limits, memory_gibibytes=each)
        given = shares(device, ranks, launches, "this machine")
        return tuple(replace(self, limits=limits, gpus=gpus) for gpus in given)

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
        on_wait: OnWait | None = None,  # noqa: ARG002 - a container never waits
    ) -> LaunchOutcome:
        """See ``Executor.launch``. When it returns or raises, by Ctrl-C too, its container is gone."""
        started = time.monotonic()
        gpus = request.ranks if request.device == "cuda" else 0
        names = gpu_names(self.gpus, gpus)
        try:
            folder = _Folders.make(request, surroundings, self.binds)
            output = BoundedLog(log)
        except OSError as error:
            raise LaunchError(
                f"The launch cannot be started: {error.strerror} ({error.filename}); change --out."
            ) from error
        mirror = Mirror(folder.inside, request, self.limits.disk_gibibytes * GIBIBYTE)
        finished: list[Moment] = []

        def look() -> bool:
            """Take in what is new; true when the launch has done all it was started for."""
            new = watch.poll() if watch is not None else []
            finished.extend(new)
            if on_progress is not None:
                on_progress(new)
            return stop_when is not None and stop_when(finished)

        command = [
            str(surroundings.python), "-I", "-S", str(KIT / "validator" / "execute" / "supervisor.py"),
            *launch_command(surroundings.python, request.ranks, _PORT, REQUEST),
        ]  # fmt: skip
        variables = sandbox_variables(self.image, surroundings)
        inside = Inside(command, variables, folder.binds, self.image.volumes, gpus, names)
        ended: Ended | None = None
        stopped = keep = False
        try:
            with contextlib.closing(output), self._running(inside, output, log) as sandbox:
                while (ended := sandbox.wait(self.look_every)) is None:
                    mirror.follow()
                    if look():
                        stopped = True
                        break
                    self._insist_on_space(folder, log)
                    if time.monotonic() - started > limit_seconds:
                        limit = f"{limit_seconds:g} s (policy.limits.launch_seconds)"
                        raise LaunchError(f"The launch did not end within {limit} and was killed; see {log}.")
                if stopped:
                    sandbox.kill()
            mirror.finish()
            keep = "--save" in request.arguments and (stopped or (ended is not None and ended.code == 0))
        except ForgedError as error:
            raise LaunchError(f"{printable(str(error))}; its results are not used: see {log}.") from error
        finally:
            folder.discard(keep_checkpoints=keep)
        seconds = time.monotonic() - started
        if stopped:
            return LaunchOutcome(Ending.KILLED, seconds, log)
        assert ended is not None
        if ended.code != 0 or ended.out_of_memory:
            raise LaunchError(f"The launch failed: {self._reason(ended, log, surroundings)}; see {log}.")
        look()
        return LaunchOutcome(Ending.COMPLETED, seconds, log)

    @contextlib.contextmanager
    def _running(self, inside: Inside, output: BoundedLog, log: Path) -> Iterator[Sandbox]:
        """A container that is gone afterwards, whatever happens; its removal never hides why."""
        sandbox = Sandbox.start(self.engine, self.image.identity, inside, self.limits, output.take)
        try:
            yield sandbox
        except OSError as error:
            with contextlib.suppress(LaunchError):
                sandbox.remove()
            raise LaunchError(f"{log} cannot be written ({error.strerror}); free space or change --out.") from error
        except BaseException:
            with contextlib.suppress(LaunchError):
                sandbox.remove()
            raise
        sandbox.remove()

    def _insist_on_space(self, folder: _Folders, log: Path) -> None:
        limit = self.limits.disk_gibibytes * GIBIBYTE
        if used_bytes(folder.inside, limit) + used_bytes(folder.checkpoints, limit) > limit:
            allowed = f"{self.limits.disk_gibibytes} GiB (policy.limits.disk_gibibytes)"
            raise LaunchError(f"The launch wrote more than {allowed} and was killed; see {log}.")

    def _reason(self, ended: Ended, log: Path, surroundings: Surroundings) -> str:
        if ended.out_of_memory:
            gibibytes = memory_bytes(self.limits) / GIBIBYTE
            return f"it ran out of the {gibibytes:.1f} GiB of memory that it may use (policy.limits.memory_gibibytes)"
        return printable(explain(log, ended.code, surroundings.python, self.limits.processes))


@dataclass(frozen=True, slots=True)
class _Folders:
    """The host's folders of one launch that are writable inside, and all that is bound into its sandbox."""

    inside: Path
    checkpoints: Path
    binds: tuple[Bind, ...]

    @classmethod
    def make(cls, request: LaunchRequest, surroundings: Surroundings, extra: Sequence[Path]) -> _Folders:
        """Create them, with the request as the launch is to see it."""
        request.trajectory.mkdir(parents=True, exist_ok=True)
        inside, checkpoints = request.scratch / "inside", request.scratch / "checkpoints"
        for folder in (inside, checkpoints, inside / request.trajectory.name, inside / "checkpoints"):
            folder.mkdir(exist_ok=True)
            if os.getuid() == 0:
                os.chown(folder, *user())
        translated, data = translate(request)
        file = request.scratch / "request.json"
        translated.write(file)
        file.chmod(0o644)
        binds = [
            Bind(file, str(REQUEST)),
            Bind(inside, str(LAUNCH), writable=True),
            Bind(checkpoints, str(CHECKPOINTS), writable=True),
            *kit_binds(surroundings),
            *(Bind(folder, str(folder)) for folder in extra),
            *data,
        ]
        return cls(inside, checkpoints, tuple(binds))

    def discard(self, *, keep_checkpoints: bool) -> None:
        """Remove what a launch wrote; checkpoints stay where the next segment restores them."""
        for folder in (self.inside,) if keep_checkpoints else (self.inside, self.checkpoints):
            with contextlib.suppress(OSError):
                remove_tree(folder)


def gpu_names(share: tuple[str, ...], count: int) -> tuple[str, ...]:
    """The ``count`` GPUs of a launch by name: its share, else the first that the caller's CUDA_VISIBLE_DEVICES names;
    none where any will do.

    Raises ``LaunchError`` where that names too few.
    """
    if share or not count or "CUDA_VISIBLE_DEVICES" not in os.environ:
        return share
    seen = visible_gpus()
    if len(seen) < count:
        raise LaunchError(
            f"The launch needs {counted(count, 'GPU')}, and CUDA_VISIBLE_DEVICES={','.join(seen)!r} names "
            f"{len(seen)}; let it name more, or unset it."
        )
    return seen[:count]


def kit_binds(surroundings: Surroundings) -> list[Bind]:
    """Our packages, and the Megatron checkout where there is one."""
    links = sorted(surroundings.kit.iterdir())
    binds = [Bind(link.resolve(), str(KIT / link.name)) for link in links if link.is_symlink()]
    return binds + ([Bind(surroundings.megatron, str(MEGATRON))] if surroundings.megatron is not None else [])


def sandbox_variables(image: Image, surroundings: Surroundings) -> dict[str, str]:
    """What is set inside over the image's own variables."""
    path = [KIT] + ([MEGATRON] if surroundings.megatron is not None else [])
    inherited = image.variables.get("PYTHONPATH", "")
    home = {"HOME": "/tmp", "TMPDIR": "/tmp", "USER": "validator", "LOGNAME": "validator"}  # noqa: S108 - the sandbox's
    owned = owned_variables([*map(str, path), *([inherited] if inherited else [])])
    return home | dict(surroundings.variables) | owned


def translate(request: LaunchRequest) -> tuple[LaunchRequest, list[Bind]]:
    """The request with the places that a sandbox has, and the folders that are to be bound there for it.

    The product's own arguments stand last and say where data, checkpoints and caches are.
    """
    arguments = list(request.arguments)
    binds: list[Bind] = []
    for index, argument in enumerate(request.arguments):
        before = request.arguments[index - 1] if index else ""
        path = Path(argument)
        if not path.is_absolute():
            continue
        if path.is_relative_to(request.scratch):
            arguments[index] = str(LAUNCH / path.relative_to(request.scratch))
        elif before == "--load":
            arguments[index] = str(LOAD)
            binds.append(Bind(path, str(LOAD)))
        elif before == "--data-path":
            arguments[index] = str(DATA / path.name)
            binds.append(Bind(path.parent, str(DATA)))
    trajectory = LAUNCH / request.trajectory.name
    return replace(request, arguments=tuple(arguments), trajectory=trajectory, scratch=LAUNCH), binds
