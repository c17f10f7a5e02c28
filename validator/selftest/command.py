"""``validator selftest``: from an order to a matrix."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from validator.check.launches import Launches
from validator.check.out import write_whole
from validator.errors import UsageError
from validator.faults import CATALOGUE, Fault
from validator.golden import GoldenStore
from validator.report.text import write_text
from validator.selftest.matrix import as_markdown, as_text, line_of
from validator.selftest.outcome import FaultResult, SelfTestResult
from validator.selftest.run import SelfTest, Wish


def wish_of(options: argparse.Namespace) -> Wish:
    """What the options ask for. Raises ``UsageError`` for a fault that is not in the catalogue."""
    return Wish(chosen_faults(options.fault, options.quick), options.quick, options.localise)


def chosen_faults(names: Sequence[str], quick: bool) -> tuple[Fault, ...]:
    """The named faults, else the quick ones or all."""
    for name in names:
        if name not in CATALOGUE:
            raise UsageError(f"There is no fault {name!r}; --fault takes one of {', '.join(CATALOGUE)}.")
    if names:
        return tuple(CATALOGUE[name] for name in dict.fromkeys(names))
    return tuple(fault for fault in CATALOGUE.values() if fault.quick or not quick)


def list_faults() -> str:
    """The catalogue, a line each."""
    width = max(map(len, CATALOGUE))
    lines, category = [], None
    for fault in CATALOGUE.values():
        if fault.category is not category:
            category = fault.category
            lines.append(str(category))
        lines.append(f"  {fault.name:<{width}}  {fault.does} ({fault.source})")
    return "\n".join(lines) + "\n"


def selftest_and_show(
    launches: Launches, goldens: Path, wish: Wish, out: Path, json_file: str | None, markdown_file: str | None
) -> tuple[int, SelfTestResult]:
    """Run it, show the matrix, leave ``selftest.json`` in ``out``; gives 0 where all holds, else 1."""
    golden = GoldenStore(goldens).find(launches.pipeline.name, launches.hardware_class)

    def tell(result: FaultResult) -> None:
        write_text(sys.stderr, line_of(result) + "\n")

    result = SelfTest(launches, golden, wish, tell).run()
    record = json.dumps(result.to_json(), indent=2) + "\n"
    write_whole(out / "selftest.json", record)
    if json_file:
        write_whole(Path(json_file), record)
    if markdown_file:
        write_whole(Path(markdown_file), as_markdown(result))
    write_text(sys.stdout, as_text(result))
    return (0 if result.holds else 1), result
