"""A self-test's result for people: a matrix as plain text, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from validator.report.markup import code, prose, table
from validator.report.text import printable, seconds_in_words
from validator.selftest.outcome import Approaches, FaultResult, Outcome, SelfTestResult

_MARKS = {
    Outcome.CAUGHT_AND_NAMED: "ok",
    Outcome.CAUGHT: "OTHER PLACE",
    Outcome.MISSED: "MISSED",
    Outcome.NO_EFFECT: "no effect here",
    Outcome.NOT_APPLICABLE: "not applicable",
    Outcome.ERROR: "ERROR",
}


def line_of(result: FaultResult) -> str:
    """One fault, as it is told while the self-test goes on."""
    seconds = seconds_in_words(result.seconds)
    return printable(f"  {_MARKS[result.outcome]:<14}  {result.name:<34}  {_found(result)}  ({seconds})")


def as_text(result: SelfTestResult) -> str:
    """The whole matrix."""
    lines = [headline(result), result.clean, ""]
    width = max((len(each.name) for each in result.faults), default=0)
    category = ""
    for each in result.faults:
        if each.category != category:
            category = each.category
            lines.append(category)
        seen = _seen(each.approaches)
        lines.append(f"  {each.name:<{width}}  {_MARKS[each.outcome]:<14}  {each.gate:<13}  {seen:<9}  {_found(each)}")
        lines += [f"  {'':<{width}}  {detail}" for detail in _details(each)]
    lines += ["", *summary(result)]
    return "\n".join(printable(line) for line in lines) + "\n"


def as_markdown(result: SelfTestResult) -> str:
    """The matrix as a table."""
    header = ("fault", "what it does", "outcome", "gate", "named", "module", "5 decimals", "exact loss", "s")
    rows = [
        (
            code(each.name),
            prose(each.does),
            prose(_MARKS[each.outcome]),
            prose(each.gate),
            code(each.found) if each.found else prose(each.sentence),
            "" if each.localised is None else code(each.found_module or "unknown"),
            "" if each.approaches is None else _yes(each.approaches.five_decimals),
            "" if each.approaches is None else _yes(each.approaches.exact_loss),
            f"{each.seconds:.0f}",
        )
        for each in result.faults
    ]
    told = [f"- {prose(line)}" for line in summary(result)]
    return "\n".join(
        [f"**{prose(headline(result))}**", "", prose(result.clean), "", table(header, rows), "", *told, ""]
    )


def headline(result: SelfTestResult) -> str:
    """What it came to, in one sentence."""
    if not result.clean_holds:
        return f"SELF-TEST FAILED: {result.pipeline} on {result.hardware_class}: the control is not clean."
    word = "SELF-TEST PASSED" if result.holds else "SELF-TEST FAILED"
    return (
        f"{word}: {result.pipeline} on {result.hardware_class}: {result.caught} effective faults caught, "
        f"{result.named} named as expected."
    )


def summary(result: SelfTestResult) -> Sequence[str]:
    """The rates, and what the other approaches would have seen."""
    idle = [each for each in result.faults if each.outcome in {Outcome.NO_EFFECT, Outcome.NOT_APPLICABLE}]
    lines = [
        f"caught     {result.caught}",
        f"named      {result.named}",
        f"localised  {result.localised} with a module as their cause",
        f"logged loss at 5 decimals would have seen {result.seen_by('five_decimals')}",
        f"logged loss, bit for bit, would have seen {result.seen_by('exact_loss')}",
        f"{len(idle)} say nothing here (no effect, or not applicable)",
        f"{len(result.faults)} faults in {seconds_in_words(result.seconds)}",
    ]
    wrong = [each.name for each in result.faults if each.outcome in {Outcome.CAUGHT, Outcome.MISSED, Outcome.ERROR}]
    if wrong:
        lines.append(f"look at one alone: validator selftest {result.pipeline} --fault {wrong[0]}")
    return lines


def _found(result: FaultResult) -> str:
    module = ""
    if result.localised is not None:
        module = f"  in {result.found_module or 'an unknown module'}" + ("" if result.localised else " (!)")
    return (result.found or result.sentence) + module


def _details(result: FaultResult) -> list[str]:
    if result.outcome is Outcome.CAUGHT:
        return [f"expected {result.expected}", result.sentence]
    if result.outcome in {Outcome.MISSED, Outcome.ERROR}:
        return [result.sentence]
    return [f"expected in {result.module}"] if result.localised is False else []


def _seen(approaches: Approaches | None) -> str:
    if approaches is None:
        return ""
    return f"5dp {_yes(approaches.five_decimals)[0]}, = {_yes(approaches.exact_loss)[0]}"


def _yes(seen: bool) -> str:
    return "yes" if seen else "no"
