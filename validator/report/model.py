"""The report of a check: computed once, rendered many ways. Plain values only; no gate is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

SCHEMA = "validator/report"
VERSION = 1


class Verdict(StrEnum):
    """The headline of a check, in the order in which the first that applies is taken."""

    NONDETERMINISTIC = "nondeterministic"
    CHANGED = "changed"
    RESUME_BROKEN = "resume_broken"
    OVER_BUDGET = "over_budget"
    HOST_CHANGED = "host_changed"
    ERROR = "error"
    NO_BASELINE = "no_baseline"
    INCONCLUSIVE = "inconclusive"
    REBASELINED = "rebaselined"
    PASS = "pass"  # noqa: S105

    @property
    def exit_code(self) -> int:
        return _EXIT_CODES[self]


_EXIT_CODES = {
    Verdict.NONDETERMINISTIC: 1,
    Verdict.CHANGED: 1,
    Verdict.RESUME_BROKEN: 1,
    Verdict.OVER_BUDGET: 1,
    Verdict.HOST_CHANGED: 3,
    Verdict.ERROR: 3,
    Verdict.NO_BASELINE: 4,
    Verdict.INCONCLUSIVE: 4,
    Verdict.REBASELINED: 0,
    Verdict.PASS: 0,
}


class Outcome(StrEnum):
    """What one gate found."""

    HOLDS = "holds"
    FAILS = "fails"
    ERROR = "error"  # could not be found out
    NO_BASELINE = "no_baseline"  # nothing to compare with
    INCONCLUSIVE = "inconclusive"  # an interval straddles its budget
    NOT_RUN = "not_run"  # switched off, or not reached after an error


@dataclass(frozen=True, slots=True)
class MetricDifference:
    """One metric's two values, exact."""

    name: str
    dtype: str
    expected: str
    observed: str
    expected_bits: str
    observed_bits: str
    ulps: int | None


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first place at which two trajectories differ.

    ``moment`` is ``step:3``, ``setup:3`` or ``entry:3``; ``leaf`` is empty where a whole group is missing.
    ``expected`` and ``observed`` are digests in hexadecimal, empty on the side that lacks the leaf; where only the
    lengths differ (``kind`` is ``length``), the last moments.
    """

    kind: str
    moment: str
    rank: int | None
    group: str
    leaf: str
    expected: str
    observed: str
    metric: MetricDifference | None
    sentence: str


@dataclass(frozen=True, slots=True)
class SpreadRow:
    """How far a divergence has spread in one state group at one moment.

    ``differing`` of ``leaves`` are counted over all ranks; ``ranks`` is the number of ranks on which a leaf differs.
    """

    moment: str
    group: str
    differing: int
    leaves: int
    ranks: int


@dataclass(frozen=True, slots=True)
class WaivedFinding:
    """A known defect that was seen as the policy describes it.

    ``leaf`` is ``group/name``, ``places`` are words (``restore of step 3``), ``observed`` is the wrong digest in hex,
    ``expires`` an ISO date.
    """

    gate: str
    leaf: str
    ranks: tuple[int, ...]
    places: tuple[str, ...]
    observed: str
    reason: str
    link: str
    expires: str


@dataclass(frozen=True, slots=True)
class EnvironmentDifferenceRow:
    """One fact of the environment that is not what it was, ``None`` where one side lacks it."""

    kind: str
    name: str
    expected: str | None
    observed: str | None
    can_change_bits: bool
    origin: str


@dataclass(frozen=True, slots=True)
class PolicyChangeRow:
    """One value of the policy that the change under test alters; ``None`` where one side lacks it."""

    key: str
    before: str | None
    after: str | None


class LocalisationOutcome(StrEnum):
    """What launching again with a trace of the divergent step came to."""

    MODULE = "module"  # a module, a function, a collective or the optimizer: same inputs, other outputs
    GROUP = "group"  # no module made the difference: it was in the data, or in the state that the step began with
    VANISHED = "vanished"  # with the trace on, both sides are equal
    BEFORE_STEP_1 = "before_step_1"  # in the initialisation
    UNKNOWN = "unknown"  # the module could not be found out; the sentence says why


@dataclass(frozen=True, slots=True)
class TracedValue:
    """One thing that a traced call was given or returned, as both sides have it.

    ``expected`` and ``observed`` are digests (64 bits, hexadecimal), empty on the side that lacks it.
    """

    name: str
    expected: str
    observed: str


@dataclass(frozen=True, slots=True)
class TracedPlace:
    """One traced call in which the two sides differ, among those that follow the cause."""

    phase: str
    micro_batch: int | None
    module: str
    name: str
    inputs_differ: bool
    outputs_differ: bool


@dataclass(frozen=True, slots=True)
class Localisation:
    """The first point of a step at which both sides are given the same and something else comes out.

    ``phase`` is ``forward``, ``backward``, ``collective`` or ``optimizer``, and ``start``, ``batch`` or ``end`` where
    no module is the cause. ``module`` is a path as ``named_modules`` gives it (empty for the model itself, and outside
    of modules); ``module_class`` the class, or the function where there is no module. ``file`` is relative to the
    folder that its package lies in. ``group`` and ``leaf`` name what differs where the outcome is ``group``. ``shown``
    of ``attempts`` pairs of launches showed the difference.
    """

    outcome: LocalisationOutcome
    sentence: str
    step: int | None = None
    rank: int | None = None
    micro_batch: int | None = None
    phase: str = ""
    module: str = ""
    module_class: str = ""
    file: str = ""
    line: int = 0
    group: str = ""
    leaf: str = ""
    inputs: tuple[TracedValue, ...] = ()
    outputs: tuple[TracedValue, ...] = ()
    following: tuple[TracedPlace, ...] = ()
    attempts: int = 0
    shown: int = 0


@dataclass(frozen=True, slots=True)
class GateReport:
    """One gate's outcome, with a sentence for people, and its details; ``seconds`` of wall clock in its launches."""

    name: str
    outcome: Outcome
    required: bool
    sentence: str
    launches: int = 0
    divergence: Divergence | None = None
    spread: tuple[SpreadRow, ...] = ()
    waived: tuple[WaivedFinding, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    localisation: Localisation | None = None


@dataclass(frozen=True, slots=True)
class StepRow:
    """What a person reads of one step: exact decimals of rank-independent metrics, by name."""

    step: int
    metrics: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LaunchRow:
    """One launch of the check: what it was for, the steps it did (``1 to 10``), how it ended, and its log's path."""

    name: str
    purpose: str
    steps: str
    ended: str
    seconds: float
    log: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a check found.

    ``started`` is an ISO time in UTC; ``golden`` is what the golden's record says (``None`` without one);
    ``suggested_waivers`` is YAML to paste under ``policy``; ``reproduce`` is one shell line; ``out`` the folder that
    holds trajectories and logs. ``base`` is the commit that policy and golden come from, empty where they come from
    the work tree; ``new_golden`` what the record of a golden says that comes with the change.
    """

    verdict: Verdict
    sentence: str
    pipeline: str
    hardware_class: str
    started: str
    seconds: float
    gates: tuple[GateReport, ...]
    golden: Mapping[str, object] | None
    environment_difference: tuple[EnvironmentDifferenceRow, ...] = ()
    unexercised: tuple[str, ...] = ()
    unused_waivers: tuple[str, ...] = ()
    expired_waivers: tuple[str, ...] = ()
    suggested_waivers: str = ""
    steps: tuple[StepRow, ...] = ()
    launches: tuple[LaunchRow, ...] = ()
    stamps: tuple[str, ...] = ()
    reproduce: str = ""
    next_step: str = ""
    out: str = ""
    environment: Mapping[str, object] = field(default_factory=dict)
    overhead: Mapping[str, object] | None = None
    base: str = ""
    policy_changes: tuple[PolicyChangeRow, ...] = ()
    new_golden: Mapping[str, object] | None = None

    @property
    def localisation(self) -> Localisation | None:
        """Where in the code the divergence begins: that of the first failing gate that was looked at."""
        return next((gate.localisation for gate in self.gates if gate.localisation is not None), None)

    @property
    def divergence(self) -> Divergence | None:
        """The divergence behind the headline: that of the first failing gate."""
        for gate in self.gates:
            if gate.outcome is Outcome.FAILS and gate.divergence is not None:
                return gate.divergence
        return None
