"""What a localisation says, in a sentence."""

from __future__ import annotations

from validator.diagnose.pairing import Pair
from validator.diagnose.traces import Event

#: How a state group that differs is told.
_STATES = {
    "batch": "the micro-batch that the forward pass is given differs{leaf}: it is the data, and no module",
    "rng": (
        "the state of a random-number generator differs{leaf}: somewhere before, more or fewer numbers were drawn, "
        "or another state was restored"
    ),
    "data_position": "the position in the data differs{leaf}",
    "schedule": "the schedule differs{leaf}",
    "optimizer": "the optimizer's state differs{leaf}",
    "parameters": "parameters differ{leaf}",
    "main_parameters": "the optimizer's main parameters differ{leaf}",
    "buffers": "buffers differ{leaf}",
    "gradients": "gradients differ{leaf}",
}


def sentence_of_module(pair: Pair, step: int, inner: Pair | None) -> str:
    """A call that is given the same and comes to something else."""
    event = pair.event
    what = described(event)
    if pair.lonely:
        side = "the observed" if pair.expected is None else "the expected"
        return f"{place(pair, step)}: {what} takes place on {side} side only."
    if inner is not None:
        return (
            f"{place(pair, step)}: {what} is given the same on both sides, and hands something else to "
            f"{named(inner.event)}: its own code makes the difference."
        )
    if event.phase == "collective":
        return f"{place(pair, step)}: {what} is given the same on every rank, and comes to something else."
    if event.phase == "backward":
        results = ", ".join(pair.outputs[:3])
        return f"{place(pair, step)}: {what} is given the same gradient on both sides, and comes to another {results}."
    drawn = [name for name in pair.outputs if name.startswith("rng/")]
    if drawn and len(drawn) == len(pair.outputs):
        return f"{place(pair, step)}: {what} draws another number of random numbers ({', '.join(drawn)})."
    return f"{place(pair, step)}: {what} is given the same on both sides, and comes to something else."


def sentence_of_state(pair: Pair, step: int, group: str, leaf: str) -> str:
    """A state that differs, and no call that made it so."""
    event = pair.event
    what = _STATES.get(group, f"{group} differs{{leaf}}").format(leaf=f" ({leaf})" if leaf else "")
    if event.phase == "start":
        begun = "after the initialisation" if step == 1 else f"when step {step} begins"
        return f"The difference is there already {begun}, rank {pair.rank}: {what}."
    if event.phase == "end":
        return f"The difference is there when step {step} ends, rank {pair.rank}: {what}; no traced call made it."
    if group == "batch":
        return f"{place(pair, step)}: {what}."
    return f"{place(pair, step)}: when {named(event)} begins, {what}; no traced call made the difference."


def sentence_of_unknown(pair: Pair, step: int) -> str:
    """A call whose inputs differ, and nothing that made them so."""
    return (
        f"{place(pair, step)}: the difference is first seen in what {described(pair.event)} is given; "
        "no traced call made it, so the module is unknown."
    )


def place(pair: Pair, step: int) -> str:
    """``Step 2, rank 0, micro-batch 1, forward``."""
    event = pair.event
    parts = [f"Step {step}", f"rank {pair.rank}"]
    parts += [f"micro-batch {event.micro_batch}"] if event.micro_batch is not None else []
    return ", ".join([*parts, event.phase])


def named(event: Event) -> str:
    """The shortest name of what an event is of."""
    if event.phase == "collective":
        return event.name
    if event.phase == "optimizer" and not event.name:
        return "the optimizer's update"
    if event.phase == "optimizer" and event.module:
        return f"the optimizer's update of {event.name}"
    return event.module or event.name or event.source.name or "the model"


def described(event: Event) -> str:
    """Name, class, file and line, as far as they are known."""
    found = named(event)
    if event.phase == "collective" and event.module:
        found += f" within {event.module}"
    code = f"{event.source.file}:{event.source.line}" if event.source.file else ""
    kind = event.source.name if event.source.name != found else ""
    about = ", ".join(part for part in (kind, code) if part)
    return f"{found} ({about})" if about else found
