"""Who vouches for a new golden, and what may become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from validator.errors import UsageError
from validator.golden.drift import check_finite
from validator.trajectory.reader import Trajectory

#: Independent launches that must agree before a trajectory becomes golden.
LEAST_LAUNCHES = 2


@dataclass(frozen=True, slots=True)
class Approval:
    """Who vouches for a new golden and on what evidence.

    ``launches`` independent launches gave the candidate's bits; ``resume`` is ``holds``, or ``off`` where the
    pipeline's policy has no resume gate; ``change`` names what caused it (a commit, a pull request's address), if any.
    """

    approver: str
    requester: str
    reason: str
    launches: int
    resume: str
    recorded: date
    change: str | None = None
    accept_drift: bool = False

    def __post_init__(self) -> None:
        """Raises ``UsageError`` for a text that is empty or has several lines."""
        for name in ("approver", "requester", "reason", "change"):
            value = getattr(self, name)
            if value is not None and not (value.strip() and value.isprintable()):
                raise UsageError(f"The {name} is {value!r}; accepted is a text of one line (--{name}).")


def check_candidate(candidate: Trajectory, approval: Approval) -> tuple[str, str]:
    """The candidate's pipeline and hardware class; raises ``UsageError`` where it may not become golden."""
    stamps = candidate.header.get("stamps") or []
    if stamps:
        listed = ", ".join(map(str, stamps)) if isinstance(stamps, Sequence) else str(stamps)
        raise UsageError(f"The candidate is stamped ({listed}); a golden comes from a launch as the pipeline has it.")
    if not candidate.complete:
        raise UsageError(f"The candidate is {candidate.status}; a golden comes from a launch that came to its end.")
    if approval.launches < LEAST_LAUNCHES:
        found = f"{approval.launches} launch" + ("" if approval.launches == 1 else "es")
        raise UsageError(
            f"{found} gave the candidate's bits; a golden needs {LEAST_LAUNCHES} independent ones that agree."
        )
    if approval.resume not in ("holds", "off"):
        raise UsageError(f"The resume gate is {approval.resume!r}; a golden needs 'holds', so repair the resume first.")
    key = tuple(str(candidate.header.get(name) or "") for name in ("pipeline", "hardware_class"))
    for name in key:
        if not name or name.startswith(".") or "/" in name or not name.isprintable():
            raise UsageError(f"The candidate's header names {key}; accepted are a pipeline and a hardware class.")
    check_finite(candidate)
    return key[0], key[1]
