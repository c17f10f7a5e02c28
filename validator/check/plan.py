"""Which launches a check consists of. Pure: made from the pipeline alone, before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from validator.pipeline import Policy, Save

#: Steps that a segment trains past its save, and that are compared there, before it is killed (DESIGN.md 4.5).
STEPS_PAST_SAVE = 2


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One launch of a check.

    ``restore`` is the step that it restores, 0 for a fresh start, and ``load_from`` the launch that saved it.
    ``save`` is the checkpoint that it writes on the way. With ``kill_after`` it is killed once that step is recorded
    on all ranks and the save, if any, is complete; otherwise it runs to the end. ``trace`` is the one step whose module
    trace it writes.
    """

    name: str
    purpose: str
    restore: int = 0
    load_from: str | None = None
    save: Save | None = None
    kill_after: int | None = None
    trace: int | None = None


def reference() -> LaunchPlan:
    """The uninterrupted launch that saves nothing."""
    return LaunchPlan("reference", "uninterrupted, saves nothing")


def repeat(number: int = 1) -> LaunchPlan:
    """An independent launch of the same thing, at full length."""
    name = "repeat" if number == 1 else f"repeat-{number}"
    return LaunchPlan(name, "the same again, independently")


def base() -> LaunchPlan:
    """The golden's own environment, on this host."""
    return LaunchPlan("base", "the golden's environment, uninterrupted")


def resume_chain(policy: Policy) -> tuple[LaunchPlan, ...]:
    """One segment a save, each killed two steps past it, and a last one that runs to the end; empty without saves."""
    if not policy.saves:
        return ()
    chain: list[LaunchPlan] = []
    restored = 0
    before: str | None = None
    for number, save in enumerate(policy.saves, start=1):
        begin = f"restores step {restored}" if restored else "starts fresh"
        purpose = f"{begin}, saves step {save.step} ({save.mode}), is killed after step {save.step + STEPS_PAST_SAVE}"
        name = f"resume-{number}"
        chain.append(LaunchPlan(name, purpose, restored, before, save, save.step + STEPS_PAST_SAVE))
        restored, before = save.step, name
    last = f"resume-{len(chain) + 1}"
    chain.append(LaunchPlan(last, f"restores step {restored}, runs to the end", restored, before))
    return tuple(chain)
