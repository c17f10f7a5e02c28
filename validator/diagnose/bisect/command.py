"""``validator bisect``: from its options to its exit code."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from validator.check.order import Order
from validator.check.out import write_whole
from validator.check.place import executors
from validator.check.prepare import prepare, refuse_used
from validator.diagnose.bisect.bisection import Bisection
from validator.diagnose.bisect.report import render_json, render_terminal
from validator.diagnose.bisect.sides import read_sides
from validator.diagnose.bisect.store import Origins, cache_folder
from validator.errors import UsageError
from validator.golden import GoldenStore
from validator.report.progress import progress_for
from validator.report.style import style_for
from validator.report.text import printable, write_text


def bisect_and_show(options: argparse.Namespace, order: Order) -> int:
    """Carry out the command; returns its exit code. ``order`` has everything but the interpreter."""
    if order.place.image is not None:
        raise UsageError(
            "bisect does not launch in an image: its sets are links to files of this machine and run its Python; "
            "leave --image out, or run bisect inside of the image."
        )
    refuse_used(order.out)
    executor, _ = executors(order.place, order.pipeline, order.out)
    origins = Origins(tuple(Path(folder).absolute() for folder in options.find_links), options.offline)
    sides = read_sides(
        options.before, options.after, python=options.python, base=options.base_environment, origins=origins,
        cache=cache_folder(),
    )  # fmt: skip
    order = replace(order, python=str(sides.python.base))
    launches = prepare(order, executor, progress_for(sys.stderr))
    # Packages are only read: bytecode that is not there yet is not written beside them.
    quiet = {**launches.surroundings.variables, "PYTHONDONTWRITEBYTECODE": "1"}
    launches.surroundings = replace(launches.surroundings, variables=quiet)
    goldens, where = GoldenStore(order.goldens), tuple(order.place.words)
    found = Bisection(sides, launches, goldens, _say, where, traced=not options.no_localise).run()
    text = render_json(found)
    write_whole(order.out / "bisect.json", text)
    if options.json is not None:
        write_whole(Path(options.json), text)
    write_text(sys.stdout, render_terminal(found, style_for(sys.stdout)))
    return found.outcome.exit_code


def _say(line: str) -> None:
    write_text(sys.stderr, f"{printable(line)}\n")
