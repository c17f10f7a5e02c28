"""Proof that the recorder sees (DESIGN.md 4.6): a blind one is an error, never a pass. Judges what a launch left
behind.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from validator.execute.request import LaunchRequest
from validator.report.text import brief
from validator.trajectory.groups import PERSISTENT_GROUPS, Group, Moment, Phase
from validator.trajectory.known_answers import expected_answers
from validator.trajectory.leaves import ALGORITHMS
from validator.trajectory.reader import Trajectory

#: Groups that every rank has at every step, whatever the layout.
_EVERYWHERE = (
    Group.METRICS, Group.GRADIENTS, Group.PARAMETERS, Group.OPTIMIZER, Group.RNG, Group.DATA_POSITION, Group.SCHEDULE,
)  # fmt: skip

#: At most this many problems are told; one is enough for an error.
_TOLD = 5

#: A launch that says it covered more leaves of one kind says nothing.
_MOST_LEAVES = 2**40


@dataclass(frozen=True, slots=True)
class Proof:
    """What speaks for a recorder: counts, and one clause for each thing that speaks against it.

    ``note`` says where the digests were not computed as they usually are, and why.
    """

    answers: int = 0
    samples: int = 0
    flips: int = 0
    leaves: int = 0
    problems: tuple[str, ...] = ()
    note: str = ""

    @property
    def holds(self) -> bool:
        return not self.problems

    @property
    def sentence(self) -> str:
        """For people."""
        if self.problems:
            rest = len(self.problems) - 1
            more = f" (and {rest} more)" if rest else ""
            return f"The recorder is blind: {self.problems[0]}{more}."
        return (
            f"{self.answers} known answers, {self.samples} leaves recomputed from raw bytes, "
            f"{self.flips} flipped bits seen, {self.leaves} tensors covered.{self.note and f' {self.note}'}"
        )

    def __add__(self, other: Proof) -> Proof:
        problems = (*self.problems, *other.problems)[:_TOLD]
        return Proof(
            self.answers + other.answers, self.samples + other.samples, self.flips + other.flips,
            max(self.leaves, other.leaves), problems, self.note or other.note,
        )  # fmt: skip


def prove(trajectory: Trajectory, samples: int, sample_problems: Sequence[str]) -> Proof:
    """Judge the recorder of a launch that ran to its end. ``samples`` and ``sample_problems`` come from
    ``samples.examine``.
    """
    problems = list(sample_problems)
    if not trajectory.complete:
        problems.append("not every rank wrote an end record with the same moments")
    answers = flips = leaves = 0
    for rank, ending in trajectory.endings.items():
        problems += [f"rank {rank}: {problem}" for problem in _wrong_answers(ending, trajectory.algorithm)]
        problems += [f"rank {rank}: {problem}" for problem in _uncovered(ending)]
        problems += [f"rank {rank}: {problem}" for problem in _missing_groups(trajectory, rank, ending)]
        problems += [f"rank {rank}: {problem}" for problem in _unseen_flips(trajectory, rank, ending)]
        answers += len(_mapping(ending, "known_answers"))
        flips += len(_mapping(ending, "flips"))
        counts = (value for value in _mapping(ending, "coverage").values() if isinstance(value, int))
        leaves += sum(value for value in counts if 0 <= value < _MOST_LEAVES)
    return Proof(answers, samples, flips, leaves, tuple(problems), _note(trajectory))


def prove_save(request: LaunchRequest) -> Proof:
    """Judge what a launch that saved and was then killed said of its checkpoint's tensors, on every rank."""
    problems = []
    for rank in range(request.ranks):
        try:
            told = json.loads(request.coverage_file(rank).read_text(encoding="utf-8"))
            unmapped = list(told["unmapped"])
        except (OSError, ValueError, TypeError, KeyError):
            problems.append(
                f"rank {rank}: the launch did not say whether every tensor of its checkpoint maps to a leaf"
            )
            continue
        if unmapped:
            tensor = f"{brief(unmapped[0])}{_more(unmapped)}"
            problems.append(f"rank {rank}: no leaf covers the checkpoint's tensor {tensor}")
    return Proof(problems=tuple(problems))


def unexercised(trajectory: Trajectory) -> tuple[str, ...]:
    """Groups that never changed on a rank during the launch: what the check cannot say anything about."""
    still: dict[Group, list[int]] = {}
    for rank in trajectory.ranks:
        seen: dict[Group, set[bytes]] = {}
        for moment in trajectory.moments:
            for group, digest in trajectory.groups(rank, moment).items():
                seen.setdefault(group, set()).add(digest)
        for group, digests in seen.items():
            if len(digests) == 1:
                still.setdefault(group, []).append(rank)
    everywhere = list(trajectory.ranks)
    return tuple(
        str(group)
        if ranks == everywhere
        else f"{group} on rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
        for group in Group
        if (ranks := still.get(group))
    )


def _note(trajectory: Trajectory) -> str:
    """What the first rank says that fell back to a slower digest; empty where none did."""
    for ending in trajectory.endings.values():
        told = _mapping(ending, "digest")
        if why := told.get("why"):
            return f"Digests by {brief(told.get('implementation'))}: {brief(why)}."
    return ""


def _wrong_answers(ending: Mapping[str, Any], algorithm: str) -> Iterator[str]:
    told = _mapping(ending, "known_answers")
    for name, expected in expected_answers(ALGORITHMS[algorithm]).items():
        found = told.get(name)
        if found != expected:
            yield f"the known answer {name!r} came out as {brief(found)}, and {expected} is right"


def _uncovered(ending: Mapping[str, Any]) -> Iterator[str]:
    coverage = _mapping(ending, "coverage")
    unmapped = coverage.get("unmapped")
    if not isinstance(unmapped, list):
        yield "the launch does not say which tensors map to no leaf"
    elif unmapped:
        yield f"no leaf covers the tensor {brief(unmapped[0])}{_more(unmapped)}"
    for kind in ("parameters", "optimizer"):
        if not coverage.get(kind):
            yield f"the launch names no {kind} that it covered"


def _missing_groups(trajectory: Trajectory, rank: int, ending: Mapping[str, Any]) -> Iterator[str]:
    steps = [moment for moment in trajectory.moments if moment.phase is Phase.STEP]
    if not steps:
        yield "no step is recorded"
        return
    expected = {*_EVERYWHERE}
    if _mapping(ending, "coverage").get("buffers"):
        expected.add(Group.BUFFERS)
    if {"--bf16", "--fp16"} & set(_mapping(trajectory.header, "computation").get("arguments", ())):
        expected.add(Group.MAIN_PARAMETERS)
    if _reads_batch(trajectory, ending):
        expected.add(Group.BATCH)
    for moment in trajectory.moments:
        present = trajectory.groups(rank, moment).keys()
        wanted = expected if moment.phase is Phase.STEP else expected & set(PERSISTENT_GROUPS)
        if missing := [group for group in Group if group in wanted and group not in present]:
            yield f"the group {missing[0]} is not recorded at {moment}"
            return


def _reads_batch(trajectory: Trajectory, ending: Mapping[str, Any]) -> bool:
    """The first and the last pipeline stage are given a batch, those between are not."""
    stages = [_mapping(each, "layout").get("pp", 0) for each in trajectory.endings.values()]
    return _mapping(ending, "layout").get("pp", 0) in {0, max(stages)}


def _unseen_flips(trajectory: Trajectory, rank: int, ending: Mapping[str, Any]) -> Iterator[str]:
    flips = _mapping(ending, "flips")
    last: Moment = trajectory.moments[-1]
    for group, digest in trajectory.groups(rank, last).items():
        flip = flips.get(group)
        if not isinstance(flip, Mapping):
            yield f"no bit of the group {group} was flipped"
        elif flip.get("before") != digest.hex():
            yield f"before its bit was flipped, {group} was not what the last step recorded"
        elif flip.get("after") == flip.get("before"):
            yield f"a flipped bit in {group}/{brief(flip.get('leaf'))} did not change its fingerprint"
        elif flip.get("restored") != flip.get("before"):
            yield f"{group} did not come back when its flipped bit was put back"


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more" if len(names) > 1 else ""


def _mapping(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The mapping under ``name``; empty where the launch wrote anything else."""
    value = of.get(name)
    return value if isinstance(value, Mapping) else {}
