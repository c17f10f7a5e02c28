"""Applies a person's own Python file inside a launch (``--plugin``). docs/plugins.md says what it may rely on.

The file is found in the kit that goes first on a launch's path, so that it is there wherever a launch runs. What goes
wrong in it is one sentence with the file's own line; the traceback stands in the launch's log.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from validator.errors import LaunchError
from validator.execute.plugin import ENTRY
from validator.execute.request import LaunchRequest
from validator.workload import megatron_internals
from validator.workload.megatron_internals import OwnedShard
from validator.workload.state import TrainingState

_MODULE = "validator_plugin_of_this_launch"


@dataclass(frozen=True)
class StepResult:
    """What ``train_step`` returned: reduced losses by name, whether the update was skipped, the gradient norm."""

    losses: Mapping[str, Tensor]
    skipped: bool
    gradient_norm: Any


class Launch:
    """One rank of a launch, as a plugin's ``install`` is given it.

    The methods named after moments take a function, to be called at that moment on this rank, and return it, so that
    they serve as decorators. Steps are counted from 1. The model is there from ``on_setup`` on.
    """

    def __init__(self, request: LaunchRequest, arguments: Any, rank: int) -> None:
        self.request = request
        self.arguments = arguments
        self.rank = rank
        self.world_size = request.ranks
        self._state: TrainingState | None = None
        self._step = 0
        self._on_setup: list[Callable[[], object]] = []
        self._before_step: list[Callable[[int], object]] = []
        self._before_update: list[Callable[[int], object]] = []
        self._after_step: list[Callable[[int, StepResult], object]] = []
        self._on_end: list[Callable[[], object]] = []

    def on_setup[F: Callable[[], object]](self, function: F) -> F:
        """Model and optimizer are built, and restored where the launch loads a checkpoint."""
        self._on_setup.append(function)
        return function

    def before_step[F: Callable[[int], object]](self, function: F) -> F:
        """The loop is about to train the step that ``function`` is told."""
        self._before_step.append(function)
        return function

    def before_update[F: Callable[[int], object]](self, function: F) -> F:
        """The step's gradients are reduced, and ``optimizer.step()`` is about to begin."""
        self._before_update.append(function)
        return function

    def after_step[F: Callable[[int, StepResult], object]](self, function: F) -> F:
        """``train_step`` has returned; ``function`` is told the step and its result."""
        self._after_step.append(function)
        return function

    def on_end[F: Callable[[], object]](self, function: F) -> F:
        """The loop has ended and the recorder has written its last line."""
        self._on_end.append(function)
        return function

    @property
    def modules(self) -> list[torch.nn.Module]:
        """The model's chunks on this rank, without Megatron's wrappers: one, but for interleaved pipelines."""
        return self._built().modules

    @property
    def optimizer(self) -> Any:
        """Megatron's optimizer."""
        return self._built().optimizer

    @property
    def scheduler(self) -> Any:
        """Megatron's scheduler of learning rate and weight decay."""
        return self._built().scheduler

    def parameters(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter on this rank by its name, whole, in the model's dtype."""
        return self._built().named_parameters()

    def buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Every buffer on this rank by its name."""
        return self._built().named_buffers()

    def shards(self) -> Iterator[tuple[str, OwnedShard]]:
        """What this rank's distributed optimizer owns, by the parameter's name: ``shard``, ``main``, ``state``, and
        the reduced ``gradient``.
        """
        return self._built().shards()

    def hooks(self) -> megatron_internals.Hooks:
        """What Megatron's loop has to call."""
        return megatron_internals.Hooks(
            self._set_up, self._enter, lambda: _call(self._before_update, self._step), self._leave,
            lambda: _call(self._on_end),
        )  # fmt: skip

    def _built(self) -> TrainingState:
        if self._state is None:
            raise LaunchError("the model is not built yet; use it from on_setup on")
        return self._state

    def _set_up(self, model: list[Any], optimizer: Any, scheduler: Any, arguments: Any) -> None:
        self._state = TrainingState(model, optimizer, scheduler, arguments)
        self.arguments = arguments
        _call(self._on_setup)

    def _enter(self, done: int) -> None:
        self._step = done + 1
        _call(self._before_step, self._step)

    def _leave(self, losses: Mapping[str, Tensor], skipped: bool, gradient_norm: Any) -> None:
        _call(self._after_step, self._step, StepResult(losses, skipped, gradient_norm))


def _call(functions: list[Any], *arguments: Any) -> None:
    for function in functions:
        function(*arguments)


@contextlib.contextmanager
def applied(file: Path, request: LaunchRequest, arguments: Any) -> Iterator[None]:
    """Install the file, and answer for it as long as the training within lasts. Raises ``LaunchError``."""
    with _answering_for(file):
        launch = Launch(request, arguments, int(os.environ["RANK"]))
        install = _load(file)
        megatron_internals.observe_training(launch.hooks())
        install(launch)
        yield


def _load(file: Path) -> Callable[[Launch], object]:
    specification = importlib.util.spec_from_file_location(_MODULE, file, loader=_loader(file))
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    install = getattr(module, ENTRY, None)
    if not callable(install):
        raise LaunchError(f"the plugin {file.name} defines no function {ENTRY}")
    return install


def _loader(file: Path) -> Any:
    """One that takes any file name and writes no bytecode: the folder is read-only, and shared by all ranks."""
    from importlib.machinery import SourceFileLoader

    class Loader(SourceFileLoader):
        def set_data(self, *_: Any, **__: Any) -> None:
            """Nothing."""

    return Loader(_MODULE, str(file))


@contextlib.contextmanager
def _answering_for(file: Path) -> Iterator[None]:
    """Turn an error that passed through the file into one sentence; leave every other as it is."""
    try:
        yield
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == str(file)]
        syntax = isinstance(error, SyntaxError) and error.filename == str(file)
        if not own and not syntax:
            raise
        if isinstance(error, SystemExit) and frames[-1] is not own[-1]:
            raise  # Megatron's own way out, through a function that the plugin wrapped
        traceback.print_exc()
        line, place = (error.lineno, "") if syntax else (own[-1].lineno, f" ({own[-1].name})")
        message = " ".join(str(error).split()).rstrip(".")
        kind = (
            "" if isinstance(error, LaunchError) else f"{type(error).__name__}: " if message else type(error).__name__
        )
        raise LaunchError(f"the plugin {file.name} failed in line {line}{place}: {kind}{message}.") from error
