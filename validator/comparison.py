"""The answer of a comparison: values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from validator.trajectory.differences import Kind
from validator.trajectory.groups import PERSISTENT_GROUPS, Group, Moment, Phase
from validator.trajectory.leaves import LeafKey
from validator.trajectory.metrics import Metric
from validator.trajectory.reader import Trajectory

#: Characters of a name within a sentence.
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class MomentPair:
    """Two moments that must agree in ``groups``, or in all groups of either side where that is ``None``."""

    expected: Moment
    observed: Moment
    groups: tuple[Group, ...] | None = None

    def covers(self, group: Group) -> bool:
        """Whether the pair asks about the group."""
        return self.groups is None or group in self.groups


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """One metric's two values; ``ulps`` is their distance, ``None`` for NaN, integers or unequal dtypes."""

    name: str
    expected: Metric
    observed: Metric
    ulps: int | None

    def __str__(self) -> str:
        distance = "" if self.ulps is None else f", {self.ulps} ULP"
        return (
            f"{self.expected.value!r} ({self.expected.dtype} 0x{self.expected.bits}) expected, "
            f"{self.observed.value!r} ({self.observed.dtype} 0x{self.observed.bits}) observed{distance}"
        )


@dataclass(frozen=True, slots=True)
class Divergence:
    """One place at which two trajectories differ.

    ``moment`` is the observed side's; at a restore ``expected_moment`` is another one. ``leaf`` is the expected key, or
    the observed one where the leaf is extra, or ``None`` where a whole group or moment is concerned. ``expected`` and
    ``observed`` are digests in hex, empty where a side has nothing; for ``length``, the last moment of each side.
    """

    kind: Kind
    moment: Moment
    expected_moment: Moment
    rank: int | None = None
    group: Group | None = None
    leaf: LeafKey | None = None
    observed_leaf: LeafKey | None = None
    expected: str = ""
    observed: str = ""
    metric: MetricDifference | None = None

    @property
    def name(self) -> str:
        """``group/leaf`` as waivers write it, or the group alone; empty for ``length``."""
        if self.leaf is None:
            return str(self.group or "")
        return f"{self.group}/{self.leaf.name}"

    @property
    def sentence(self) -> str:
        """The divergence in one sentence for people."""
        if self.kind is Kind.LENGTH:
            return (
                f"{self.moment} is in only one of the two: "
                f"the expected trajectory reaches {self.expected}, the observed one {self.observed}"
            )
        return f"{self.moment}, rank {self.rank}: {_shown(self.name)} {self._what}"

    @property
    def _what(self) -> str:
        if self.metric is not None:
            return str(self.metric)
        if self.kind is Kind.RENAMED and self.observed_leaf is not None:
            return f"is now called {_shown(self.observed_leaf.name)}, with equal bits"
        if self.kind is Kind.LEAF and self.leaf != self.observed_leaf:
            return f"was {_form(self.leaf)} and is {_form(self.observed_leaf)}"
        return {
            Kind.LEAF: f"has digest {self.observed}, expected {self.expected}",
            Kind.REORDERED: "is listed in another place, with equal bits",
            Kind.MISSING_LEAF: "is missing",
            Kind.EXTRA_LEAF: "is new",
            Kind.MISSING_GROUP: "is missing",
            Kind.EXTRA_GROUP: "is new",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Spread:
    """How far a difference has spread in one group at one moment.

    ``differing`` of ``leaves`` leaves differ, counted over the ``ranks`` ranks on which the group differs.
    """

    moment: Moment
    group: Group
    differing: int
    leaves: int
    ranks: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a comparison found.

    ``first`` is the divergence: at the first moment with a difference that is not waived, what is nearest to the cause
    (``trajectory/causality.py``). ``differences`` lists the first of what is not waived, by moment, rank, group, leaf;
    ``spread`` counts all of it.
    ``waived`` has the findings of each waiver. ``refused`` is a sentence where the two cannot be compared.
    """

    differences: tuple[Divergence, ...] = ()
    first: Divergence | None = None
    spread: tuple[Spread, ...] = ()
    waived: Mapping[str, tuple[Divergence, ...]] = field(default_factory=dict)
    refused: str | None = None
    moments_compared: int = 0
    leaves_compared: int = 0

    @property
    def equal(self) -> bool:
        """Whether everything was compared and nothing but waived findings differs."""
        return self.refused is None and not self.differences

    @property
    def only_names(self) -> bool:
        """Whether all listed differences are of names or order, with equal bits."""
        return bool(self.differences) and all(each.kind in (Kind.RENAMED, Kind.REORDERED) for each in self.differences)


def resume_pairs(
    reference: Trajectory, segment: Trajectory, restored_step: int, last: int | None = None
) -> list[MomentPair]:
    """What a launch that restored step ``restored_step`` is compared with: an uninterrupted reference.

    Right after the restore (``setup:k``, ``entry:k``) the groups that outlive a step, with the reference's ``step:k``;
    every later step in full. A launch from fresh (``restored_step`` 0) is compared moment by moment. ``setup:k`` and
    the reference's steps after it, through ``last`` (by default one step), are asked for even where the segment lacks
    them, so that a segment that did not train so far is seen.
    """
    through = restored_step + 1 if last is None else last
    later = (each for each in reference.moments if each.phase is Phase.STEP and restored_step < each.step <= through)
    wanted = {*segment.moments, Moment(restored_step, Phase.SETUP), *later}
    pairs = []
    for moment in sorted(wanted, key=lambda each: each.order):
        if moment.phase is Phase.STEP or restored_step == 0:
            pairs.append(MomentPair(moment, moment))
        else:
            pairs.append(MomentPair(Moment(moment.step), moment, PERSISTENT_GROUPS))
    return pairs


def _form(key: LeafKey | None) -> str:
    if key is None:
        return "nothing"
    shard = f" shard {_shown(key.shard)}" if key.shard else ""
    return f"{_shown(key.dtype)}[{_shown(', '.join(map(str, key.shape)))}]{shard}"


def _shown(name: str) -> str:
    """A name that a launch wrote, for a sentence: on one line, nothing hidden, its middle left out where it is long."""
    short = name if len(name) <= _SHOWN else f"{name[: _SHOWN // 2]}…{name[-_SHOWN // 2 :]}"
    return short if short.isprintable() else repr(short)
