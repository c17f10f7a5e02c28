"""What happens before a check's first launch: all that can be refused, and the places that launches start from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from validator.check.arguments import launch_variables
from validator.check.launches import Launches
from validator.check.order import Order, chain_of
from validator.check.preflight import check_arguments, check_data, check_packages, check_precision, check_variables
from validator.environment import hardware_class
from validator.errors import LaunchError, UsageError
from validator.execute.kit import surround
from validator.execute.launch import Executor
from validator.pipeline import Gate, Requirement
from validator.report.progress import Progress


def prepare(order: Order, executor: Executor, progress: Progress, base: Executor | None = None) -> Launches:
    """Preflight: everything that can be refused before a launch starts. Raises ``UsageError``; makes the out folder."""
    computation = order.pipeline.computation
    if computation.nodes > executor.nodes:
        found, place = computation.nodes, executor.place
        raise UsageError(f"{order.pipeline.file}: computation.nodes is {found}; {place} runs {executor.nodes}.")
    if order.launches > 1 and order.requirements[Gate.REPEATABILITY] is Requirement.OFF:
        raise UsageError(f"{order.pipeline.file}: policy.gates.repeatability is off; --launches needs it on.")
    variables = launch_variables(computation)
    inherited = executor.inherited()
    source = dict.fromkeys(inherited.keys() - variables.keys(), executor.place) | dict.fromkeys(order.changes, "--env")
    check_variables({**inherited, **variables, **order.changes}, source)
    check_arguments(computation)
    check_data(computation)
    if order.base is None:
        refuse_used(order.out)
    host = executor.host()
    key = hardware_class(computation, host)
    check_precision(computation, host)
    interpreter = executor.find_interpreter(order.python, order.megatron)
    check_packages(computation, interpreter.packages)
    try:
        order.out.mkdir(parents=True, exist_ok=True)
        surroundings = surround(order.out / "kit", interpreter, order.megatron, variables, order.changes, order.plugin)
        base_surroundings = surroundings
        if base is not None:
            # Of another interpreter, all that is asked for belongs to what is under test, and nothing to the base.
            own = order.place.base_python is not None
            megatron, changes = (None, {}) if own else (order.megatron, order.changes)
            python = base.find_interpreter(order.place.base_python if own else order.python, megatron)
            base_surroundings = surround(order.out / "base-kit", python, megatron, variables, changes, order.plugin)
    except OSError as error:
        raise LaunchError(f"{order.out} cannot be written ({error.strerror}); change --out or free space.") from error
    chain = chain_of(order.pipeline)
    launches = Launches(
        pipeline=order.pipeline, hardware_class=key, surroundings=surroundings, executor=executor, out=order.out,
        progress=progress, total=1 + len(chain), stamps=order.stamps, switches=order.switches,
    )  # fmt: skip
    if base is not None:
        label = "" if order.place.base_python is None else f"the environment of {order.place.base_python}"
        launches.base = replace(
            launches, surroundings=base_surroundings, executor=base, rows=launches.rows, label=label
        )
    return launches


def refuse_used(out: Path) -> None:
    """Raise ``UsageError`` where the folder for a check's files is no new or empty one."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not an empty folder; change --out.")
