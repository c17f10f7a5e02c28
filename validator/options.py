"""From the options of a command to what they ask for: the project, the pipeline, the order, its launches."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from validator.errors import UsageError

if TYPE_CHECKING:
    from validator.check.launches import Launches
    from validator.check.order import Order
    from validator.check.place import Place
    from validator.check.side_by_side import SideBySide
    from validator.execute.plugin import Plugin
    from validator.golden import GoldenStore
    from validator.pipeline import Pipeline, Requirement


def project_root() -> Path:
    """The project around the working directory."""
    from validator.pipeline import find_project

    return find_project(Path.cwd())


def pipeline_of(options: argparse.Namespace) -> Pipeline:
    """The pipeline that is named by name or file."""
    from validator.pipeline import load_pipeline

    return load_pipeline(options.pipeline, project_root())


def store_of(options: argparse.Namespace, *, may_be_new: bool = False) -> GoldenStore:
    """The golden store that ``--golden`` names, or the project's. Raises ``UsageError`` for one that is not there."""
    from validator.golden import GoldenStore

    if options.golden is None:
        return GoldenStore(project_root() / "golden")
    if not may_be_new and not Path(options.golden).is_dir():
        raise UsageError(f"{options.golden} is no folder; --golden takes a golden store.")
    return GoldenStore(Path(options.golden).resolve())


def order_of(options: argparse.Namespace, *, may_be_new: bool = False) -> Order:
    """What a person asked for. ``may_be_new``: the golden store need not be there yet. Makes the run's folder."""
    from datetime import datetime

    from validator.check.order import Order
    from validator.check.out import default_out

    revision = getattr(options, "base", None)
    plugin = plugin_of(options)
    pipeline = pipeline_of(options)
    store = store_of(options, may_be_new=may_be_new)
    changes = pairs("--env", options.env)
    out = (
        Path(options.out).resolve()
        if options.out
        else default_out(Path.cwd(), pipeline.name, datetime.now().astimezone())
    )
    base = None
    if revision is not None:
        from validator.check.base import read_base
        from validator.check.prepare import refuse_used

        refuse_used(out)
        pipeline, base = read_base(options.pipeline, project_root(), revision, out / "base")
    return Order(
        pipeline=pipeline, out=out, goldens=store.root, changes=changes, python=options.python,
        megatron=Path(options.megatron) if options.megatron else None, keep_going=getattr(options, "keep_going", False),
        overhead=_requirement(options), launches=_number("--launches", getattr(options, "launches", 1)),
        parallel=_number("--parallel", getattr(options, "parallel", 1)),
        switches=pairs("--switch", options.switch), base=base, place=place_of(options), plugin=plugin,
    )  # fmt: skip


def _requirement(options: argparse.Namespace) -> Requirement | None:
    from validator.pipeline import Requirement

    chosen = getattr(options, "requirement", None)
    return None if chosen is None else Requirement(chosen)


def plugin_of(options: argparse.Namespace) -> Plugin | None:
    """The file that ``--plugin`` names, read."""
    from validator.execute.plugin import Plugin

    return None if options.plugin is None else Plugin.read(Path(options.plugin))


def place_of(options: argparse.Namespace) -> Place:
    """Where launches are asked to run."""
    from validator.check.place import Place

    slurm = pairs("--slurm-option", options.slurm_option) if options.slurm or options.slurm_option else None
    binds = tuple(Path(folder).absolute() for folder in getattr(options, "bind", ()))
    base_python = getattr(options, "base_python", None)
    return Place(options.image, getattr(options, "base_image", None), binds, slurm, base_python)


def launches_of(order: Order) -> Launches:
    """Everything that can be refused before a launch is; then the launches, where they are to run."""
    from validator.check.place import executors
    from validator.check.prepare import prepare
    from validator.report.progress import progress_for

    executor, base = executors(order.place, order.pipeline, order.out)
    return prepare(order, executor, progress_for(sys.stderr), base)


def side_by_side_of(order: Order, launches: Launches) -> SideBySide:
    """Launches as many at a time as ``--parallel`` says."""
    from validator.check.side_by_side import SideBySide
    from validator.report.lanes import Lanes

    if order.parallel == 1:
        return SideBySide(launches)
    computation = order.pipeline.computation
    executors = launches.executor.side_by_side(str(computation.device), computation.ranks, order.parallel)
    return SideBySide(launches, executors, Lanes(sys.stderr))


def _number(option: str, given: int) -> int:
    if given < 1:
        raise UsageError(f"{option} {given} is not accepted; give a whole number from 1.")
    return given


def pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` words as a mapping; raises ``UsageError`` for anything else."""
    found = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name.replace("_", "a").isalnum() or name[0].isdigit():
            raise UsageError(f"{option} {text!r} is no NAME=VALUE; write it like {option} ATEN_CPU_CAPABILITY=avx2.")
        found[name] = value
    return found
