"""Where a check's launches run, from what a person asked for."""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from validator.errors import UsageError
from validator.execute.launch import Executor
from validator.pipeline import Device, Pipeline


@dataclass(frozen=True, slots=True)
class Place:
    """This machine by default. ``image`` and ``base_image`` are references, IDs or archives; ``base_python`` is the
    interpreter of the golden's environment.

    ``binds`` are folders of the host that an image gets read-only. ``slurm`` is ``None``, or the options of the jobs.
    """

    image: str | None = None
    base_image: str | None = None
    binds: tuple[Path, ...] = ()
    slurm: Mapping[str, str] | None = field(default=None)
    base_python: str | None = None

    @property
    def words(self) -> list[str]:
        """As they stand on a command line."""
        words = []
        for option, value in (("--image", self.image), ("--base-image", self.base_image)):
            words += [option, value] if value is not None else []
        for folder in self.binds:
            words += ["--bind", str(folder)]
        words += ["--base-python", self.base_python] if self.base_python is not None else []
        if self.slurm is not None:
            words.append("--slurm")
            for name, value in self.slurm.items():
                words += ["--slurm-option", f"{name}={value}"]
        return words

    def check(self) -> None:
        """Raise ``UsageError`` for options that do not go together."""
        if self.slurm is not None and self.image is not None:
            raise UsageError(
                "--slurm and --image do not go together; run the check on a node, or let jobs use an image."
            )
        if self.image is None and (self.base_image is not None or self.binds):
            option = "--base-image" if self.base_image is not None else "--bind"
            raise UsageError(f"{option} says something about a container; give --image with it.")
        if self.base_python is not None and self.image is not None:
            raise UsageError("--base-python and --image do not go together; give --base-image.")
        for folder in self.binds:
            if not folder.exists():
                raise UsageError(f"{folder} does not exist; --bind takes a folder of this machine.")


def executors(place: Place, pipeline: Pipeline, out: Path) -> tuple[Executor, Executor | None]:
    """What runs the launches, and what runs the base image's. Raises ``UsageError`` or ``LaunchError``."""
    place.check()
    if place.image is not None:
        return _containers(place, pipeline)
    if place.slurm is not None:
        from validator.execute.slurm import SlurmExecutor  # noqa: PLC0415
        from validator.execute.slurm_options import SlurmOptions  # noqa: PLC0415

        options, computation = SlurmOptions.parse(place.slurm), pipeline.computation
        options.check(computation.ranks)
        memory = pipeline.policy.limits.memory_gibibytes
        device = str(computation.device)
        jobs = SlurmExecutor.start(options, computation.nodes, device, out / "node", memory)
        return jobs, None if place.base_python is None else jobs
    from validator.execute.local import LocalExecutor  # noqa: PLC0415

    return LocalExecutor(), None if place.base_python is None else LocalExecutor()


def _containers(place: Place, pipeline: Pipeline) -> tuple[Executor, Executor | None]:
    from validator.execute.container import ContainerExecutor  # noqa: PLC0415
    from validator.execute.docker_engine import Engine  # noqa: PLC0415
    from validator.execute.image import find_image  # noqa: PLC0415
    from validator.execute.nvidia_toolkit import insist_on_toolkit  # noqa: PLC0415

    engine = Engine.connect()
    if pipeline.computation.device is Device.CUDA and engine.is_here:
        insist_on_toolkit()
    made = []
    for given in (place.image, place.base_image):
        if given is not None:
            image = find_image(engine, given)
            if image.loaded_as is not None:  # a product that is killed leaves it to the next start
                atexit.register(engine.forget, image.loaded_as)
            made.append(ContainerExecutor(engine, image, pipeline.policy.limits, place.binds))
    return made[0], made[1] if len(made) > 1 else None
