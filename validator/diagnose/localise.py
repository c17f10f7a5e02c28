"""Two traces of one step in, the place at which their difference begins out. Pure; nothing is launched here.

On each rank the first event that differs is looked at. Where its inputs agree, it made the difference. Where they do
not, the difference came from the code of the call around it, from the state that the step began with, or, through a
collective, from another rank: then that rank's own first event is the one to look at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from validator.diagnose.pairing import Pair, pair_up
from validator.diagnose.sentences import sentence_of_module, sentence_of_state, sentence_of_unknown
from validator.diagnose.traces import Trace, read_trace
from validator.report.model import Localisation, LocalisationOutcome, TracedPlace, TracedValue
from validator.trajectory.groups import Group

#: Names that begin so are of a state group, not of a value that was handed from call to call.
_STATE = (
    "parameters", "buffers", "rng", "gradients", "main_parameters", "optimizer", "data_position", "schedule", "batch",
)  # fmt: skip

#: Names of all state groups; what is before a slash may be anything.
_KNOWN = frozenset(map(str, Group))

#: Phases in which no module takes part.
_NO_MODULE = frozenset({"start", "batch", "end"})

#: Values and places that an answer holds at most.
_MOST_VALUES = 40
_MOST_PLACES = 12


@dataclass(frozen=True)
class _Cause:
    """What made the difference on a rank: the pair whose answer it is, and the first one that differs.

    ``group`` and ``leaf`` are given where it is a state and no call. ``inner`` is what was called by the code that
    made the difference, where it did so before it came to its own end.
    """

    first: Pair
    pair: Pair
    group: str = ""
    leaf: str = ""
    inner: Pair | None = None
    known: bool = True


def localise(expected: Path, observed: Path, ignore: frozenset[str] = frozenset()) -> Localisation:
    """Where two traces of one step begin to differ. ``expected`` and ``observed`` are folders of traces, or files that
    a golden keeps; ``ignore`` names leaves (``rng/cpu``) that are known to differ.

    Raises ``TrajectoryError`` where a trace is missing, cut off or garbled.
    """
    return localise_traces(read_trace(expected), read_trace(observed), ignore)


def localise_traces(expected: Trace, observed: Trace, ignore: frozenset[str] = frozenset()) -> Localisation:
    """The same for traces that are read already."""
    if expected.step != observed.step or expected.events.keys() != observed.events.keys():
        sentence = "The two traces are of different steps or layouts, so the module is unknown."
        return Localisation(LocalisationOutcome.UNKNOWN, sentence, observed.step)
    ranks = {rank: pair_up(rank, expected.events[rank], events, ignore) for rank, events in observed.events.items()}
    firsts = {rank: next((pair for pair in pairs if pair.differs), None) for rank, pairs in ranks.items()}
    causes = [
        _cause(first, ranks[rank])
        for rank, first in firsts.items()
        if first is not None and not _comes_from_a_peer(first, ranks)
    ]
    if not causes:  # each rank was given it by another: take the earliest there is
        causes = [_cause(first, ranks[rank]) for rank, first in firsts.items() if first is not None]
    if not causes:
        sentence = f"With the trace of step {observed.step} on, the difference vanished."
        return Localisation(LocalisationOutcome.VANISHED, sentence, observed.step)
    cause = min(causes, key=lambda each: (not each.known, each.first.order, each.first.rank))
    return _answer(cause, observed.step, ranks[cause.first.rank])


def _comes_from_a_peer(first: Pair, ranks: Mapping[int, Sequence[Pair]]) -> bool:
    """Whether a collective or a message only hands over what already differed on another rank."""
    if first.event.phase != "collective" or first.lonely or first.inputs:
        return False
    for peer in frozenset(first.event.ranks):
        for pair in ranks.get(peer, ()) if peer != first.rank else ():
            if _is_the_same_collective(pair, first) and (pair.lonely or pair.inputs):
                return True
    return False


def _is_the_same_collective(pair: Pair, other: Pair) -> bool:
    left, right = pair.event, other.event
    return left.phase == "collective" and (left.kind, left.ranks, left.nth) == (right.kind, right.ranks, right.nth)


def _cause(first: Pair, pairs: Sequence[Pair]) -> _Cause:
    event = first.event
    if event.phase in _NO_MODULE:
        return _of_state(first, first, [*first.inputs, *first.outputs])
    if first.lonely or not first.inputs:
        return _Cause(first, first)
    around = list(_around(first, pairs))
    plain = [name for name in first.inputs if _group(name) == ""]
    if plain or all(_group(name) == "rng" for name in first.inputs):
        for outer in around:
            if not outer.inputs:
                return _Cause(first, outer, inner=first)
    if event.phase == "collective" and not around:
        batch = next((pair for pair in pairs if pair.order > first.order and pair.event.phase != "collective"), None)
        if batch is not None and batch.event.phase == "batch" and batch.differs:
            return _of_state(first, batch, batch.outputs)
        if event.source.file.endswith("param_and_grad_buffer.py"):
            return _of_state(first, first, ["gradients/"])
    for pair in (first, *around):
        state = [name for name in pair.inputs if _group(name)]
        if state and len(state) == len(pair.inputs):
            return _of_state(first, pair, state)
    return _Cause(first, first, known=False)


def _of_state(first: Pair, pair: Pair, names: Sequence[str]) -> _Cause:
    group, _, leaf = names[0].partition("/") if names else ("", "", "")
    return _Cause(first, pair, group, leaf) if group in _KNOWN else _Cause(first, pair, known=not names)


def _around(pair: Pair, pairs: Sequence[Pair]) -> list[Pair]:
    """The calls around a pair's, innermost first, each as its own event of the same pass tells it."""
    found: list[Pair] = []
    of_call: dict[int | None, list[Pair]] = {}
    for each in pairs:
        if not each.lonely:
            of_call.setdefault(each.event.call, []).append(each)
    parent = pair.event.parent
    while parent is not None:
        of_parent = of_call.pop(parent, [])  # no call is within itself: each is looked at once
        backward = pair.event.phase == "backward"
        same_pass = [each for each in of_parent if (each.event.phase == "backward") == backward]
        later = [each for each in same_pass if each.order > pair.order] or same_pass
        if not later:
            parent = of_parent[0].event.parent if of_parent else None
            continue
        found.append(later[0])
        parent = later[0].event.parent
    return found


def _group(name: str) -> str:
    """The state group of an input, empty where it is a value that was handed over."""
    group, slash, _ = name.partition("/")
    return group if slash and group in _STATE else ""


def _answer(cause: _Cause, step: int, pairs: Sequence[Pair]) -> Localisation:

    pair, event = cause.pair, cause.pair.event
    if cause.group:
        initial = event.phase == "start" and step == 1
        outcome = LocalisationOutcome.BEFORE_STEP_1 if initial else LocalisationOutcome.GROUP
        sentence = sentence_of_state(pair, step, cause.group, cause.leaf)
    elif cause.known:
        outcome, sentence = LocalisationOutcome.MODULE, sentence_of_module(pair, step, cause.inner)
    else:
        outcome, sentence = LocalisationOutcome.UNKNOWN, sentence_of_unknown(pair, step)
    return Localisation(
        outcome=outcome,
        sentence=sentence,
        step=step,
        rank=pair.rank,
        micro_batch=event.micro_batch,
        phase=event.phase,
        module="" if cause.group else event.module,
        module_class="" if cause.group else event.source.name,
        file="" if cause.group else event.source.file,
        line=0 if cause.group else event.source.line,
        group=cause.group,
        leaf=cause.leaf,
        inputs=_values(pair, "inputs"),
        outputs=_values(pair, "outputs"),
        following=tuple(
            TracedPlace(
                each.event.phase, each.event.micro_batch, each.event.module, each.event.name,
                bool(each.inputs), bool(each.outputs),
            )
            for each in [each for each in pairs if each.differs and each.order >= cause.first.order][:_MOST_PLACES]
        ),
    )  # fmt: skip


def _values(pair: Pair, side: str) -> tuple[TracedValue, ...]:
    """What differs first, then what agrees."""
    values = [TracedValue(*each) for each in pair.values(side)]
    values.sort(key=lambda value: value.expected == value.observed)
    return tuple(values[:_MOST_VALUES])
