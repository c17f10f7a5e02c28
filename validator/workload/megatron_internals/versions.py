"""Which Megatron Core is loaded, and what it lacks."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from validator.errors import LaunchError

TRIED_VERSIONS = ("0.19.0", "0.19.2")


def version() -> str:
    """The version of the Megatron Core that is loaded, without the commit of whatever repository it lies in."""
    return str(require("megatron.core.package_info", "__version__")).partition("+")[0]


def require(module: str, name: str) -> Any:
    """Attribute ``name`` (dotted) of ``module``; raises ``LaunchError`` with one sentence where this Megatron lacks
    it.
    """
    try:
        value: Any = importlib.import_module(module)
        for part in name.split("."):
            value = getattr(value, part)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if missing.split(".")[0] != "megatron":
            raise LaunchError(
                f"the package {missing} is missing, which {module} needs; install it beside megatron-core."
            ) from None
        raise LaunchError(lacks(missing)) from None
    except AttributeError:
        raise LaunchError(lacks(f"{module}.{name}")) from None
    return value


def missing_here(error: ImportError) -> str:
    """The sentence where one of our own modules imports what this Megatron lacks; empty for every other error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    ours = Path(__file__).resolve().parents[2]
    raised_here = trace is not None and Path(trace.tb_frame.f_code.co_filename).resolve().is_relative_to(ours)
    name = error.name or ""
    if not raised_here or name.partition(".")[0] != "megatron":
        return ""
    return lacks(f"{name}.{error.name_from}" if error.name_from else name)


def lacks(what: str) -> str:
    """The sentence about a part of Megatron that is not there."""
    try:
        found = importlib.import_module("megatron.core.package_info").__version__
    except (ImportError, AttributeError):
        return "megatron-core is not installed; install one of " + ", ".join(TRIED_VERSIONS) + "."
    return (
        f"megatron-core {found} lacks {what}, which the workload needs; versions tried are {', '.join(TRIED_VERSIONS)}."
    )
