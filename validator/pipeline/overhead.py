"""What the policy says about the cost of determinism: the budget, how much is measured, and what the fastest default
mode is. Nothing of it belongs to the computation, so that no golden depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from validator.pipeline.arguments import check, split
from validator.pipeline.document import Item, shown

#: Numbers of pairs are multiples of this, so that a look has as many pairs in the order A B as in the order B A.
PAIRS_A_LOOK = 2

#: The second look has at most so many times the pairs of the first: the rule's error rate is known that far.
MOST_TIMES = 4

_FRACTION = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPTION = re.compile(r"--[a-z0-9][a-z0-9-]*")


@dataclass(frozen=True, slots=True)
class DefaultArm:
    """How the fastest default mode differs from the computation, beyond what the hardware class brings.

    ``unset`` names variables that it does without, ``variables`` those that it adds or changes; ``without`` names
    options of Megatron's (with their values) that it drops, ``arguments`` are put at the end of its command line.
    """

    unset: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OverheadPolicy:
    """How the overhead is measured and judged.

    ``budget`` is a fraction of the default arm's step time (0.1: ten per cent). Between ``least_pairs`` and
    ``most_pairs`` pairs of launches are measured, each of ``warmup`` steps that are dropped and ``timed`` steps that
    count.
    """

    budget: float = 0.10
    least_pairs: int = 4
    most_pairs: int = 8
    warmup: int = 3
    timed: int = 12
    default: DefaultArm = field(default_factory=DefaultArm)

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of pairs after which a decision may be taken, ascending: the least and the most."""
        return tuple(sorted({self.least_pairs, self.most_pairs}))


def read_overhead(item: Item) -> OverheadPolicy:
    """The policy under ``policy.overhead``; raises ``UsageError`` for the first thing wrong with it."""
    values = item.mapping([], ["budget", "pairs", "steps", "default"])
    usual = OverheadPolicy()
    least, most = usual.least_pairs, usual.most_pairs
    if "pairs" in values:
        pairs = values["pairs"].mapping(["min", "max"])
        least, most = pairs["min"].integer(4, 100), pairs["max"].integer(4, 100)
        if least % PAIRS_A_LOOK or most % PAIRS_A_LOOK or not least <= most <= MOST_TIMES * least:
            found = f"is min {least}, max {most}"
            accepted = f"even numbers from 4 to 100, max from min to {MOST_TIMES} times min"
            values["pairs"].place.refuse(f"{found}; accepted are {accepted}")
    warmup, timed = usual.warmup, usual.timed
    if "steps" in values:
        steps = values["steps"].mapping(["warmup", "timed"])
        warmup, timed = steps["warmup"].integer(1, 1000), steps["timed"].integer(3, 10_000)
    return OverheadPolicy(
        budget=_fraction(values["budget"]) if "budget" in values else usual.budget,
        least_pairs=least,
        most_pairs=most,
        warmup=warmup,
        timed=timed,
        default=_default(values["default"]) if "default" in values else usual.default,
    )


def _fraction(item: Item) -> float:
    accepted = "a fraction or a percentage above 0 and at most 1000 %, as in 0.1 or 10 %"
    match = _FRACTION.fullmatch(item.raw(accepted).strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if not 0 < value <= 10:
        item.place.refuse(f"is {shown(item.raw(accepted))}; accepted is {accepted}")
    return value


def _default(item: Item) -> DefaultArm:
    values = item.mapping([], ["unset", "variables", "without", "arguments"])
    unset = (
        tuple(_named(name, _VARIABLE, "a variable's name") for name in values["unset"].items())
        if "unset" in values
        else ()
    )
    without: tuple[str, ...] = ()
    if "without" in values:
        without = tuple(_named(name, _OPTION, "an option that begins with --") for name in values["without"].items())
    variables = {}
    for name, value in values["variables"].pairs() if "variables" in values else ():
        if not _VARIABLE.fullmatch(name):
            value.place.refuse("is no name of an environment variable; accepted are letters, digits and '_'")
        variables[name] = value.raw("a text or a number")
    words = []
    if "arguments" in values:
        text = values["arguments"]
        words = [word.text for word in split(text.text("Megatron's command line"), text.place)]
        check(split(text.text(), text.place), text.place)
    return DefaultArm(unset, variables, without, tuple(words))


def _named(item: Item, pattern: re.Pattern[str], accepted: str) -> str:
    text = item.text(accepted)
    if not pattern.fullmatch(text):
        item.place.refuse(f"is {shown(text)}; accepted is {accepted}")
    return text
