"""Two trajectories in, differences out. Nothing is written, and no launch is known here.

The comparison descends by digests: moments whose digests agree are not opened, then ranks, then groups, and only where
a group differs are its leaves read. A difference between trajectories is an answer; two that cannot be compared at all
are ``refused``, with a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from validator.comparison import Comparison, Divergence, MetricDifference, MomentPair, Spread, resume_pairs
from validator.trajectory.causality import CAUSAL_ORDER, causal_rank
from validator.trajectory.differences import Kind, group_differences
from validator.trajectory.groups import Group
from validator.trajectory.metrics import ulp_distance
from validator.trajectory.reader import Trajectory
from validator.trajectory.tally import BlockCounter, Tally

__all__ = ["LISTED", "Waive", "compare", "resume_pairs"]

#: ``Comparison.differences`` lists this many; all of them are counted in ``spread``.
LISTED = 200

#: Names the waiver that covers a difference, or ``None``.
type Waive = Callable[[Divergence], str | None]


def compare(
    expected: Trajectory,
    observed: Trajectory,
    pairs: Sequence[MomentPair] | None = None,
    waive: Waive | None = None,
) -> Comparison:
    """Compare moment with moment: ``pairs``, or every moment that either side has.

    ``waive`` is asked about every leaf that differs (not about lengths and whole groups); waived differences count
    neither in ``equal`` nor in ``spread``. Raises ``TrajectoryError`` where a file was damaged after it was opened.
    """
    refused = _refusal(expected, observed)
    if refused:
        return Comparison(refused=refused)
    if pairs is None:
        every = sorted({*expected.moments, *observed.moments}, key=lambda moment: moment.order)
        pairs = [MomentPair(moment, moment) for moment in every]
    left, right = frozenset(expected.moments), frozenset(observed.moments)
    present = [pair for pair in pairs if pair.expected in left and pair.observed in right]
    absent = [pair for pair in pairs if pair.expected not in left or pair.observed not in right]
    descent = _Descent(expected, observed, present)
    leaves = sum(map(descent.leaves_of, present))
    lengths = [_length(expected, observed, absent[0])] if absent else []
    if not leaves and not lengths:
        return Comparison(refused="Nothing was compared: the two trajectories have no moment with leaves in common.")
    tally, waived = Tally.empty(len(present)), dict[str, list[Divergence]]()
    if waive is None:
        descent.count(tally)
        listed = list(islice(descent.differences(), LISTED))
        nearest = descent.nearest_to_cause(listed[0]) if listed else None
    else:
        listed, nearest = _sift(descent, waive, tally, waived)
    places = {pair.observed: position for position, pair in enumerate(pairs)}
    in_time = sorted([*listed, *lengths], key=lambda each: places[each.moment])[:LISTED]
    return Comparison(
        differences=tuple(in_time),
        first=nearest if listed and in_time[0] is listed[0] else next(iter(in_time), None),
        spread=_spread(present, tally),
        waived={name: tuple(findings) for name, findings in waived.items()},
        moments_compared=len(present),
        leaves_compared=leaves,
    )


def _refusal(expected: Trajectory, observed: Trajectory) -> str | None:
    if expected.algorithm != observed.algorithm:
        return (
            f"The digests are of different algorithms, {expected.algorithm} and {observed.algorithm}; "
            "record one of the two trajectories again."
        )
    if expected.world_size != observed.world_size:
        return (
            f"The trajectories have {expected.world_size} and {observed.world_size} ranks; "
            "only launches with the same layout can be compared."
        )
    if expected.ranks != observed.ranks:
        lacking = sorted(set(expected.ranks) ^ set(observed.ranks))
        return f"Rank {lacking[0]} is in only one of the two trajectories; record the incomplete one again."
    return None


def _length(expected: Trajectory, observed: Trajectory, pair: MomentPair) -> Divergence:
    def reach(trajectory: Trajectory) -> str:
        return str(trajectory.moments[-1]) if trajectory.moments else "nothing"

    return Divergence(Kind.LENGTH, pair.observed, pair.expected, expected=reach(expected), observed=reach(observed))


def _sift(
    descent: _Descent, waive: Waive, tally: Tally, waived: dict[str, list[Divergence]]
) -> tuple[list[Divergence], Divergence | None]:
    """Ask about every difference; count those that are not waived, list the first of them, and name the one that is
    nearest to the cause.
    """
    listed: list[Divergence] = []
    nearest: Divergence | None = None
    for index, rank in descent.places():
        for group, differences, leaves in descent.groups(index, rank):
            left = []
            for difference in differences:
                name = waive(difference) if difference.leaf is not None else None
                if name is None:
                    left.append(difference)
                else:
                    waived.setdefault(name, []).append(difference)
            if left:
                whole = left[0].leaf is None
                tally.add(index, group, leaves if whole else len(left), leaves)
                listed.extend(left[: LISTED - len(listed)])
                if left[0].moment == listed[0].moment:
                    nearest = _nearer_to_cause(nearest, left)
    return listed, nearest or (listed[0] if listed else None)


def _nearer_to_cause(nearest: Divergence | None, differences: Sequence[Divergence]) -> Divergence | None:
    """The causally first of ``nearest`` and ``differences``, all of one moment; of equals the first."""
    for each in differences:
        if each.leaf is not None and (nearest is None or _causal_key(each) < _causal_key(nearest)):
            nearest = each
    return nearest


def _causal_key(found: Divergence) -> tuple[float, int]:
    assert found.group is not None
    assert found.leaf is not None
    return causal_rank(found.group, found.leaf.name)


def _spread(pairs: Sequence[MomentPair], tally: Tally) -> tuple[Spread, ...]:
    names = tuple(Group)
    return tuple(
        Spread(
            pairs[index].observed,
            names[column],
            int(tally.differing[index, column]),
            int(tally.leaves[index, column]),
            int(tally.ranks[index, column]),
        )
        for index, column in zip(*tally.ranks.nonzero(), strict=True)
    )


class _Descent:
    """Walks down to what differs between two trajectories at pairs of moments that both have."""

    def __init__(self, expected: Trajectory, observed: Trajectory, pairs: Sequence[MomentPair]) -> None:
        self._expected = expected
        self._observed = observed
        self._pairs = pairs
        self._unequal = self._unequal_ranks()

    def leaves_of(self, pair: MomentPair) -> int:
        """Leaves that a pair covers, over all ranks, as the expected side has them."""
        if pair.groups is None:
            return self._expected.moment_leaves(pair.expected)
        columns = [index for index, name in enumerate(self._expected.group_names) if name in pair.groups]
        rows = (self._expected.group_rows(rank, pair.expected) for rank in self._expected.ranks)
        return sum(int(row["leaves"][columns].sum()) for row in rows)

    def places(self) -> Iterator[tuple[int, int]]:
        """(pair, rank) at which anything at all differs, in the order of time, then rank."""
        for index in range(len(self._pairs)):
            for position in self._unequal[:, index].nonzero()[0].tolist():
                yield index, self._expected.ranks[position]

    def differences(self) -> Iterator[Divergence]:
        """All differences: by moment, rank, group, leaf."""
        for index, rank in self.places():
            for _, differences, _ in self.groups(index, rank):
                yield from differences

    def nearest_to_cause(self, found: Divergence) -> Divergence:
        """Of what differs at the moment of ``found``, on any rank, what a step computes first."""
        index = next(at for at, pair in enumerate(self._pairs) if pair.observed == found.moment)
        ranks = [self._expected.ranks[position] for position in self._unequal[:, index].nonzero()[0].tolist()]
        nearest: Divergence | None = None
        for group in CAUSAL_ORDER:
            for rank in ranks:
                for _, differences, _ in self.groups(index, rank, group):
                    nearest = _nearer_to_cause(nearest, differences)
                if nearest is not None and group is not Group.METRICS:
                    return nearest  # other ranks have nothing that comes before it
            if nearest is not None and _causal_key(nearest)[0] <= CAUSAL_ORDER.index(group):
                return nearest
        return nearest or found

    def count(self, tally: Tally) -> None:
        """Count all differences, without listing them."""
        if not self._unequal.any():
            return
        moments = [(pair.expected, pair.observed) for pair in self._pairs]
        whole = np.array([pair.groups is None for pair in self._pairs], np.bool_)
        counter = BlockCounter(self._expected, self._observed, moments, tally, self._count_groups)
        for position, rank in enumerate(self._expected.ranks):
            places = self._unequal[position].nonzero()[0]
            if len(places):
                counter.count_rank(rank, places, whole)

    def groups(self, index: int, rank: int, only: Group | None = None) -> Iterator[tuple[Group, list[Divergence], int]]:
        """Groups that differ at a place, or ``only`` one of them: the group, its differences, and how many leaves it
        has.
        """
        pair = self._pairs[index]
        left = self._expected.groups(rank, pair.expected)
        right = self._observed.groups(rank, pair.observed)
        for group in Group if only is None else (only,):
            if left.get(group) == right.get(group) or not pair.covers(group):
                continue
            if group in left and group in right:
                differences, leaves = self._leaves(pair, rank, group)
                yield group, differences, leaves
            else:
                missing = group in left
                side, moment = (self._expected, pair.expected) if missing else (self._observed, pair.observed)
                kind = Kind.MISSING_GROUP if missing else Kind.EXTRA_GROUP
                digests = left.get(group, b"").hex(), right.get(group, b"").hex()
                whole = Divergence(kind, pair.observed, pair.expected, rank, group, None, None, *digests)
                yield group, [whole], len(side.leaves(rank, moment, group).table)

    def _leaves(self, pair: MomentPair, rank: int, group: Group) -> tuple[list[Divergence], int]:
        expected = self._expected.leaves(rank, pair.expected, group)
        observed = self._observed.leaves(rank, pair.observed, group)
        found = [
            Divergence(
                each.kind,
                pair.observed,
                pair.expected,
                rank,
                group,
                each.expected or each.observed,
                each.observed,
                each.expected_digest.hex(),
                each.observed_digest.hex(),
                self._metric(pair, rank, each.expected.name) if group is Group.METRICS and each.expected else None,
            )
            for each in group_differences(expected, observed)
        ]
        return found, max(len(expected.table), len(observed.table))

    def _metric(self, pair: MomentPair, rank: int, name: str) -> MetricDifference | None:
        expected = self._expected.metrics(rank, pair.expected).get(name)
        observed = self._observed.metrics(rank, pair.observed).get(name)
        if expected is None or observed is None or expected == observed:
            return None
        return MetricDifference(name, expected, observed, ulp_distance(expected, observed))

    def _count_groups(self, index: int, rank: int) -> dict[Group, tuple[int, int]]:
        return {
            group: (leaves if differences[0].leaf is None else len(differences), leaves)
            for group, differences, leaves in self.groups(index, rank)
            if differences
        }

    def _unequal_ranks(self) -> NDArray[np.bool_]:
        """``[ranks, pairs]``: whether a rank's digests differ. Reads nothing where the moments' own digests agree."""
        unequal = np.zeros((len(self._expected.ranks), len(self._pairs)), np.bool_)
        open_pairs = [
            index
            for index, pair in enumerate(self._pairs)
            if self._expected.moment_digest(pair.expected) != self._observed.moment_digest(pair.observed)
        ]
        if open_pairs:
            left = [self._expected.moment_position(self._pairs[index].expected) for index in open_pairs]
            right = [self._observed.moment_position(self._pairs[index].observed) for index in open_pairs]
            expected = self._expected.tree.rank_rows()["digest"][:, left]
            observed = self._observed.tree.rank_rows()["digest"][:, right]
            unequal[:, open_pairs] = (expected != observed).any(axis=2)
        return unequal
