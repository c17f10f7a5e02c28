"""A measurement as a gate of a check: outcome, sentence, and the few lines that a person wants beneath it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from validator.check.verdict import OVERHEAD
from validator.overhead.gpu import held_back
from validator.overhead.words import bytes_in_words, interval_in_words, percent, seconds
from validator.report.model import GateReport, Outcome

#: Operators named beneath the gate.
_OPERATORS = 3

_OUTCOMES = {"holds": Outcome.HOLDS, "fails": Outcome.FAILS, "inconclusive": Outcome.INCONCLUSIVE}


def overhead_gate(record: Mapping[str, Any], *, required: bool) -> GateReport:
    """The gate that a whole measurement gives."""
    launches = sum(len(arm["launches"]) for arm in record["arms"]) + (len(record["arms"]) if record["breakdown"] else 0)
    return GateReport(
        OVERHEAD, _OUTCOMES[record["decision"]], required, record["sentence"], launches, notes=tuple(notes(record))
    )


def notes(record: Mapping[str, Any]) -> Iterator[str]:
    """One line an arm, further arms' overheads, and where the time goes."""
    for arm in record["arms"]:
        step = arm["step_seconds"]
        spread = f"5 % to 95 % of steps: {seconds(step['p5'])} to {seconds(step['p95'])}"
        rate = f"{arm['tokens_per_second']:.0f} tokens/s"
        memory = f"peak {bytes_in_words(arm['peak_memory_bytes'])} a rank"
        yield f"{arm['name']}: {seconds(step['median'])} a step ({spread}), {rate}, {memory}"
    for found in record["further"]:
        yield f"{found['arm']} over {found['over']}: {percent(found['estimate'])} ({interval_in_words(found)})"
    shown = record["breakdown"]
    if shown:
        yield "difference by phase: " + ", ".join(_difference(row) for row in shown["phases"])
        yield "most by operator: " + ", ".join(_difference(row) for row in shown["operators"][:_OPERATORS])
    yield from disturbances(record)


def disturbances(record: Mapping[str, Any]) -> Iterator[str]:
    """What else the host did while it was timed, where that is worth a word."""
    launches = [launch for arm in record["arms"] for launch in arm["launches"]]
    for key, words in (
        ("other_cores", "other processes kept {} cores busy"),
        ("stolen_cores", "the hypervisor took {}"),
    ):
        most = max(launch[key] for launch in launches)
        if most >= 0.1:
            yield f"while timed, {words.format(f'up to {most:.1f}')}"
    held = [reasons for launch in launches if (reasons := held_back(launch["gpu"]))]
    if held:
        words = ", ".join(sorted({reason for reasons in held for reason in reasons}))
        yield f"the GPU's clocks were held back at the end of {len(held)} of {len(launches)} timed launches: {words}"


def _difference(row: Mapping[str, Any]) -> str:
    sign = "+" if row["difference"] >= 0 else "−"
    return f"{row['name']} {sign}{seconds(abs(row['difference']))}"
