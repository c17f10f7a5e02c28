"""What an image lacks for a launch, all of it at once: asked by its own interpreter, in a sandbox."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from validator.errors import LaunchError
from validator.execute.docker_engine import Engine
from validator.execute.doctor import PACKAGES, Diagnosis, Finding, State, package_finding
from validator.execute.image import Image, find_image
from validator.execute.interpreter import OLDEST, QUESTION, Interpreter, understand
from validator.execute.kit import owned_variables
from validator.execute.sandbox import Bind, Ended, Inside, Sandbox
from validator.pipeline import Limits
from validator.report.text import printable

#: Tried in this order where ``--python`` names none.
_NAMES = ("python3", "python")

#: Seconds that an interpreter gets to tell its packages.
_ANSWER_WITHIN = 120

#: Packages that it is asked for.
_ASKED = (*PACKAGES, "xxhash")

#: Most that is heard of what it tells, in bytes.
_HEARD = 1 << 20


@dataclass(frozen=True, slots=True)
class _Asked:
    """An interpreter of the image, or why there is none."""

    interpreter: Interpreter | None
    problem: str = ""


def insist(
    engine: Engine, image: Image, option: str | None, binds: Sequence[Path], limits: Limits, megatron: Path | None
) -> Interpreter:
    """The image's interpreter; raises ``LaunchError`` with one sentence that names everything the image lacks."""
    asked = _ask(engine, image, option, binds, limits)
    lacking = Diagnosis(tuple(_findings(image, asked, megatron))).lacking
    if lacking or asked.interpreter is None:
        lacks = lacking.removeprefix("Lacking: ").rstrip(".")
        rest = f" ({asked.problem})" if asked.problem else ""
        raise LaunchError(
            f"The image {printable(image.name)} lacks {lacks}{rest}; add it to the image, or name an interpreter that "
            "has it with --python."
        )
    return asked.interpreter


def diagnose_image(given: str, option: str | None, binds: Sequence[Path]) -> Diagnosis:
    """All findings about one image; raises ``UsageError`` where there is none, ``LaunchError`` without an engine."""
    engine = Engine.connect()
    image = find_image(engine, given)
    try:
        asked = _ask(engine, image, option, binds, Limits())
        return Diagnosis(tuple(_findings(image, asked)))
    finally:
        if image.loaded_as is not None:
            engine.forget(image.loaded_as)


def _findings(image: Image, asked: _Asked, megatron: Path | None = None) -> Iterator[Finding]:
    yield Finding("image", State.OK, f"{printable(image.name)}, {image.facts['system']}")
    interpreter = asked.interpreter
    if interpreter is None:
        yield Finding("python", State.MISSING, asked.problem, "install it in the image, or name it with --python")
        for name in PACKAGES:
            yield Finding(name, State.MISSING, "there is no Python to ask")
        return
    yield Finding("python", State.OK, f"{'.'.join(map(str, interpreter.version))} at {interpreter.path}")
    for name, (oldest, purpose) in PACKAGES.items():
        yield package_finding(interpreter, name, oldest, purpose, megatron)
    if not interpreter.shares_extensions and interpreter.packages.get("xxhash") is None:
        found = "not installed, and ours is built for another Python"
        yield Finding("xxhash", State.MISSING, found, f"{interpreter.path} -m pip install xxhash")


def _ask(engine: Engine, image: Image, option: str | None, binds: Sequence[Path], limits: Limits) -> _Asked:
    tried = (option,) if option is not None else _NAMES
    problem = f"there is no {' and no '.join(tried)} in it"
    for name in tried:
        try:
            ended, told = _run(engine, image, [name, "-c", QUESTION, *_ASKED], binds, limits)
        except LaunchError as error:
            if "no such file" in str(error) or "not found" in str(error) or "not a directory" in str(error):
                continue
            if "permission denied" in str(error):
                problem = f"{name} is not executable for the user that launches run as"
                continue
            raise
        interpreter = _understand(name, told)
        if ended.code != 0 or interpreter is None:
            problem = f"{name} does not answer as a Python interpreter"
            continue
        if interpreter.version < OLDEST:
            problem = f"{name} is {'.'.join(map(str, interpreter.version))}"
            continue
        return _Asked(interpreter)
    return _Asked(None, problem)


def _run(
    engine: Engine, image: Image, command: Sequence[str], binds: Sequence[Path], limits: Limits
) -> tuple[Ended, bytes]:
    heard = bytearray()

    def hear(data: bytes) -> None:
        heard.extend(data[: _HEARD - len(heard)])

    bound = [Bind(folder, str(folder)) for folder in binds]
    home = {"HOME": "/tmp", "TMPDIR": "/tmp"}  # noqa: S108 - the sandbox's own
    inherited = image.variables.get("PYTHONPATH", "")
    inside = Inside(command, home | owned_variables([inherited] if inherited else []), bound, image.volumes)
    sandbox = Sandbox.start(engine, image.identity, inside, limits, hear)
    try:
        deadline = time.monotonic() + _ANSWER_WITHIN
        while (ended := sandbox.wait(0.05)) is None:
            if time.monotonic() > deadline:
                return Ended(1, out_of_memory=False), b""
        return ended, bytes(heard)
    finally:
        sandbox.remove()


def _understand(name: str, told: bytes) -> Interpreter | None:
    try:
        return understand(Path(name), told.decode("utf-8", "replace"), _ASKED)
    except ValueError:
        return None
