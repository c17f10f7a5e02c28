"""Two sides' events of one rank, laid beside each other: which are the same call, and in what they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from validator.diagnose.traces import Event

#: What identifies a call on both sides: phase, micro-batch, module, name, ranks, which one of these it is.
type _Key = tuple[str, int | None, str, str, tuple[int, ...], tuple[str, ...], int]


@dataclass(frozen=True)
class Pair:
    """The same event on both sides; ``None`` on a side that lacks it. ``order`` is its place in time on this rank."""

    rank: int
    order: float
    expected: Event | None
    observed: Event | None
    ignored: frozenset[str] = frozenset()

    @property
    def event(self) -> Event:
        """The observed side's event, or the only one."""
        found = self.observed or self.expected
        assert found is not None
        return found

    @property
    def lonely(self) -> bool:
        """Whether one side lacks the event."""
        return self.expected is None or self.observed is None

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of inputs that differ."""
        return () if self.lonely else self._differing(self._sides("inputs"))

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Names of outputs that differ."""
        return () if self.lonely else self._differing(self._sides("outputs"))

    @property
    def differs(self) -> bool:
        return self.lonely or bool(self.inputs) or bool(self.outputs)

    def values(self, side: str) -> Iterator[tuple[str, str, str]]:
        """(name, expected digest, observed digest) of all ``inputs`` or ``outputs``."""
        left, right = self._sides(side)
        for name in dict.fromkeys([*left, *right]):
            yield name, left.get(name, ""), right.get(name, "")

    def _sides(self, side: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
        empty: Mapping[str, str] = {}
        left = empty if self.expected is None else getattr(self.expected, side)
        return left, empty if self.observed is None else getattr(self.observed, side)

    def _differing(self, sides: tuple[Mapping[str, str], Mapping[str, str]]) -> tuple[str, ...]:
        left, right = sides
        names = (name for name in dict.fromkeys([*left, *right]) if name not in self.ignored)
        return tuple(name for name in names if left.get(name) != right.get(name))


def pair_up(
    rank: int, expected: Sequence[Event], observed: Sequence[Event], ignored: frozenset[str] = frozenset()
) -> list[Pair]:
    """All events of one rank in the order of time; those that only one side has are put where that side has them."""
    left, right = dict(_keyed(expected)), dict(_keyed(observed))
    pairs = [Pair(rank, event.number, left.get(key), event, ignored) for key, event in right.items()]
    before = -1.0
    for key, event in left.items():
        if key in right:
            before = float(right[key].number)
        else:
            pairs.append(Pair(rank, before + 0.5, event, None, ignored))
    return sorted(pairs, key=lambda pair: pair.order)


def _keyed(events: Sequence[Event]) -> Iterator[tuple[_Key, Event]]:
    counts: dict[tuple[object, ...], int] = {}
    for event in events:
        # A backward pass has one event for each gradient that it results in.
        results = tuple(event.outputs) if event.phase == "backward" else ()
        kind = (event.phase, event.micro_batch, event.module, event.name, event.ranks, results)
        counts[kind] = nth = counts.get(kind, -1) + 1
        yield (*kind, nth), event
