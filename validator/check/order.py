"""What a check is asked for, and what it found out: values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from validator.check import plan
from validator.check.base import Base
from validator.check.launches import Launched, Launches
from validator.check.place import Place
from validator.check.waivers import WaiverBook
from validator.environment import Environment
from validator.execute.plugin import Plugin
from validator.golden import Golden
from validator.pipeline import Gate, Pipeline, Requirement
from validator.report.model import GateReport, Localisation

#: Measures what determinism costs: the launches, the ``--env`` settings, the run's folder, and whether it gates; gives
#: the gate and the record of the measurement.
MeasureOverhead = Callable[[Launches, Mapping[str, str], Path, bool], tuple[GateReport, Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class Parted:
    """A gate whose two sides part, for whoever finds out where in the code: the check so far.

    ``launched`` are all launches that came to their end, the reference first; ``attribution`` is the gate's outcome
    where the golden's own environment was launched.
    """

    gate: GateReport
    golden: Golden | None
    launched: tuple[Launched, ...]
    attribution: GateReport | None
    today: date


#: Finds out where in the code the two sides of a failing gate part, with launches of its own.
Localise = Callable[[Parted], Localisation]


@dataclass(frozen=True, slots=True)
class Order:
    """What a person asked for. ``changes`` are the ``--env`` settings; ``python`` and ``megatron`` are None for our
    own.

    ``launches`` is how many independent launches there are to be at least, and ``parallel`` how many may run at a time.
    """

    pipeline: Pipeline
    out: Path
    goldens: Path
    changes: Mapping[str, str] = field(default_factory=dict)
    python: str | None = None
    megatron: Path | None = None
    keep_going: bool = False
    switches: Mapping[str, object] = field(default_factory=dict)
    base: Base | None = None
    place: Place = field(default_factory=Place)
    overhead: Requirement | None = None
    launches: int = 1
    parallel: int = 1
    plugin: Plugin | None = None

    @property
    def requirements(self) -> Mapping[Gate, Requirement]:
        """What each gate is to the verdict: as the policy says, but for ``--overhead``."""
        gates = self.pipeline.policy.gates
        return gates if self.overhead is None else {**gates, Gate.OVERHEAD: self.overhead}

    @property
    def compared_with(self) -> Path:
        """The golden store that the reference launch is compared with: the base revision's, where one is given."""
        return self.goldens if self.base is None else self.base.goldens.root

    @property
    def stamps(self) -> tuple[str, ...]:
        """Why this run can be neither approved nor published; empty where nothing was changed."""
        switched = tuple(f"switch {name}={value}" for name, value in self.switches.items())
        plugged = () if self.plugin is None else (self.plugin.stamp,)
        return (*(f"--env {name}={value}" for name, value in self.changes.items()), *switched, *plugged)


@dataclass(frozen=True, slots=True)
class Findings:
    """All that a check found out, before it is put into a report."""

    order: Order
    hardware_class: str
    started: datetime
    seconds: float
    gates: tuple[GateReport, ...]
    golden: Golden | None
    reference: Launched | None
    environment: Environment | None
    book: WaiverBook
    new_golden: Golden | None
    unexercised: tuple[str, ...]
    launches: Launches
    launched: tuple[Launched, ...] = ()
    overhead: Mapping[str, object] | None = None


def chain_of(pipeline: Pipeline) -> tuple[plan.LaunchPlan, ...]:
    """The resume chain that a check of the pipeline walks; empty where the gate is off."""
    off = pipeline.policy.gates[Gate.RESUME] is Requirement.OFF
    return () if off else plan.resume_chain(pipeline.policy)
