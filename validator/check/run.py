"""One check from its start to its report (DESIGN.md 4)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import final

from validator.check import gates, plan
from validator.check.attribution import attribution_gate, environment_notes
from validator.check.launches import Launched, Launches, Standing, against
from validator.check.order import Findings, Localise, MeasureOverhead, Order, Parted, chain_of
from validator.check.rebaseline import InvalidGoldenError, invalid_gate, rebaseline_gate, settle, valid_golden
from validator.check.recorder import unexercised
from validator.check.side_by_side import SideBySide
from validator.check.verdict import ATTRIBUTION, GOLDEN, OVERHEAD, REBASELINE, RECORDER, REPEATABILITY, RESUME
from validator.check.waivers import WaiverBook
from validator.errors import LaunchError, TrajectoryError
from validator.golden import Golden, GoldenStore
from validator.pipeline import Gate, Requirement
from validator.report.model import GateReport, Localisation, LocalisationOutcome, Outcome
from validator.trajectory.reader import Trajectory

#: What keeps a question from being answered, and is no answer to it.
MACHINERY = (LaunchError, TrajectoryError, OSError)


@final
class Check:
    """Carries out one check. ``today`` decides which waivers have expired."""

    def __init__(
        self,
        order: Order,
        launches: Launches,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        measure: MeasureOverhead | None = None,
        side_by_side: SideBySide | None = None,
        localise: Localise | None = None,
    ) -> None:
        self._order = order
        self._launches = launches
        self._side_by_side = side_by_side or SideBySide(launches)
        self._started = now()
        self._clock = time.monotonic()
        policy = order.pipeline.policy
        self._gates: dict[str, GateReport] = {}
        self._requirements = order.requirements
        self._measure = measure
        self._localise = localise
        self._overhead_record: Mapping[str, object] | None = None
        self._book = WaiverBook(RESUME, policy.waivers, self._started.date())
        self._store = GoldenStore(order.compared_with)
        self._golden: Golden | None = None
        self._new_golden: Golden | None = None
        self._done: list[Launched] = []

    def run(self) -> Findings:
        """Run every gate that can be run; a failure of the machinery is an outcome, not an exception."""
        try:
            for answer in (self._reference, self._repeatability, self._resume, self._overhead):
                if not answer():
                    break
        finally:
            self._side_by_side.close()
        self._attribute()
        self._localise_gates()
        return self._findings()

    def _reference(self) -> bool:
        """The reference launch and the golden gate; false where nothing more can be said."""
        gate = self._gate(GOLDEN)
        started = time.monotonic()
        try:
            if gate is not Requirement.OFF:
                self._golden = self._store.find(self._order.pipeline.name, self._launches.hardware_class)
            golden = None if self._golden is None else self._golden.trajectory
            reference = self._launch_first(None if golden is None else against(golden, "the golden"))
        except MACHINERY as error:
            self._gates[GOLDEN] = gates.failed_gate(GOLDEN, str(error), required=gate is Requirement.REQUIRED)
            return False
        if self._recorder_is_blind():
            return False
        if gate is not Requirement.OFF:
            where = str(self._store.folder(self._order.pipeline.name, self._launches.hardware_class))
            self._judge(
                lambda: gates.golden_gate(golden, reference.trajectory, required=self._required(GOLDEN), where=where),
                GOLDEN,
                started,
            )
            self._look_at_new_golden(reference)
        return True

    def _launch_first(self, standing: Standing | None) -> Launched:
        """The reference launch; beside it, where that is possible, what follows if it is as the golden."""
        first, chain = plan.reference(), chain_of(self._order.pipeline)
        repeats = self._repeats(agrees=self._golden is not None) if self._on(REPEATABILITY) else ()
        self._launches.total = 1 + len(chain) + len(repeats)
        # The chain comes before the repeats: it is the longest row of launches that wait for one another.
        ahead = (first, *chain, *repeats)
        self._side_by_side.expect(ahead, {} if standing is None else {first.name: standing})
        return self._launch(first, standing)

    def _look_at_new_golden(self, reference: Launched) -> None:
        """The golden that the change brings, if it brings one, takes the place of the base's where it is valid."""
        base, key = self._order.base, (self._order.pipeline.name, self._launches.hardware_class)
        head = GoldenStore(self._order.goldens)
        if base is None or not base.changes_golden(head, *key):
            return
        off = self._gate(RESUME) is Requirement.OFF
        try:
            self._new_golden = new = valid_golden(head, *key, self._golden, resume_is_off=off)
        except InvalidGoldenError as error:
            self._gates[REBASELINE] = invalid_gate(error)
            return
        self._judge(lambda: rebaseline_gate(new, reference.trajectory), REBASELINE)
        if self._gates[REBASELINE].outcome is Outcome.HOLDS:
            self._gates[GOLDEN] = replace(self._gates[GOLDEN], required=False)

    @property
    def _is_rebaselined(self) -> bool:
        gate = self._gates.get(REBASELINE)
        return gate is not None and gate.outcome is Outcome.HOLDS

    def _repeatability(self) -> bool:
        """Needs a launch of its own only where the golden does not already agree, or more launches are asked for."""
        if not self._on(REPEATABILITY) and not self._is_rebaselined:
            return self._goes_on()
        required = self._required(REPEATABILITY) or self._is_rebaselined
        gate = self._gates.get(GOLDEN)
        agrees = self._golden is not None and gate is not None and gate.outcome is Outcome.HOLDS
        self._launches.total += len(self._repeats(agrees=agrees)) - len(self._repeats(agrees=self._golden is not None))
        self._judge(lambda: self._repeat(required, agrees=agrees), REPEATABILITY)
        return (agrees and self._gates[REPEATABILITY].outcome is Outcome.HOLDS) or self._goes_on()

    def _repeat(self, required: bool, *, agrees: bool) -> GateReport:
        """Launch again, until one differs: nothing more is learnt from those after it."""
        reference = self._done[0].trajectory
        before = self._golden.record.launches if agrees and self._golden is not None else 0
        repeats: list[Trajectory] = []
        for planned in self._repeats(agrees=agrees):
            repeats.append(self._launch(planned, against(reference, "the first launch")).trajectory)
            if repeats[-1].root != reference.root:
                break
        return gates.repeatability_gate(reference, repeats, required=required, golden_launches=before)

    def _repeats(self, *, agrees: bool) -> tuple[plan.LaunchPlan, ...]:
        """The launches after the first one that repeatability takes, where the golden ``agrees`` with that or not."""
        number = max(self._order.launches - 1, 0 if agrees else 1)
        return tuple(plan.repeat(each) for each in range(1, number + 1))

    def _attribute(self) -> None:
        """A mismatch, and the golden's own environment at hand: launch it here, and see who did it."""
        base, golden = self._launches.base, self._gates.get(GOLDEN)
        repeatability = self._gates.get(REPEATABILITY)
        unsure = repeatability is not None and repeatability.outcome is not Outcome.HOLDS
        if base is None or golden is None or golden.outcome is not Outcome.FAILS or unsure or self._golden is None:
            return
        expected, reference = self._golden.trajectory, self._done[0]

        def answer() -> GateReport:
            base.total = len(base.rows) + 1
            launched = base.run(plan.base(), against(expected, "the golden"))
            if not launched.proof.holds:
                raise LaunchError(launched.proof.sentence)
            candidate = "what is under test" if base.label else self._launches.executor.place
            names = base.label or base.executor.place, candidate
            notes = environment_notes(launched.environment, reference.environment)
            thing = "change" if base.label else "image"
            return attribution_gate(expected, reference.trajectory, launched.trajectory, names, notes, thing)

        self._judge(answer, ATTRIBUTION)

    def _localise_gates(self) -> None:
        """Where in the code two sides part. It changes no outcome, whatever becomes of its launches."""
        unsure = REPEATABILITY in self._gates and self._gates[REPEATABILITY].outcome is Outcome.FAILS
        for name in (REPEATABILITY,) if unsure else (GOLDEN, ATTRIBUTION, RESUME):
            gate = self._gates.get(name)
            if self._localise is None or gate is None or gate.outcome is not Outcome.FAILS or gate.divergence is None:
                continue
            attribution = self._gates.get(ATTRIBUTION)
            parted = Parted(gate, self._golden, tuple(self._done), attribution, self._started.date())
            try:
                found = self._localise(parted)
            except MACHINERY as error:
                sentence = f"The module is unknown; this does not touch the verdict. {error}"
                found = Localisation(LocalisationOutcome.UNKNOWN, sentence)
            self._gates[name] = replace(gate, localisation=found)

    def _resume(self) -> bool:
        chain = chain_of(self._order.pipeline)
        if not chain:
            return True
        required = self._required(RESUME) or self._is_rebaselined
        waived = frozenset(waiver.group for waiver in self._book.waivers)

        def walk() -> GateReport:
            reference = self._done[0].trajectory
            segments = []
            for segment in chain:
                launched = self._launch(segment, against(reference, "the uninterrupted launch", waived))
                segments.append(gates.Segment(segment, launched.trajectory))
            return gates.resume_gate(reference, segments, self._book, required=required)

        self._judge(walk, RESUME)
        if self._gates[RESUME].outcome is Outcome.HOLDS:
            self._launches.discard_checkpoints(chain)
        return True

    def _overhead(self) -> bool:
        """Timed launches of their own, once the bits are known; not after a gate that fails."""
        measure = self._measure
        if measure is None or not self._on(OVERHEAD) or not self._goes_on():
            return True
        required = self._required(OVERHEAD)
        self._side_by_side.close()  # a timed launch has the machine to itself

        def answer() -> GateReport:
            gate, self._overhead_record = measure(self._launches, self._order.changes, self._order.out, required)
            return gate

        self._judge(answer, OVERHEAD)
        return True

    def _launch(self, planned: plan.LaunchPlan, standing: Standing | None = None) -> Launched:
        launched = self._side_by_side.take(planned, standing)
        self._done.append(launched)
        return launched

    def _judge(self, answer: Callable[[], GateReport], name: str, started: float | None = None) -> None:
        """Take a gate's answer and the time it took; a failure of the machinery is an error of this gate alone."""
        started = time.monotonic() if started is None else started
        try:
            gate = answer()
        except MACHINERY as error:
            required = name in list(Gate) and self._required(name)
            gate = gates.failed_gate(name, str(error), required=required)
        self._gates[name] = replace(gate, seconds=time.monotonic() - started)

    def _goes_on(self) -> bool:
        """After a gate that fails, the later ones run only with --keep-going."""
        failed = any(gate.required and gate.outcome in {Outcome.FAILS, Outcome.ERROR} for gate in self._gates.values())
        return self._order.keep_going or not failed

    def _recorder_is_blind(self) -> bool:
        return not all(launched.proof.holds for launched in self._done)

    def _gate(self, name: str) -> Requirement:
        return self._requirements[Gate(name)]

    def _on(self, name: str) -> bool:
        return self._gate(name) is not Requirement.OFF

    def _required(self, name: str) -> bool:
        return self._gate(name) is Requirement.REQUIRED

    def _findings(self) -> Findings:
        still = unexercised(self._done[0].trajectory) if self._done else ()
        if self._done:
            self._gates[RECORDER] = gates.recorder_gate([launched.proof for launched in self._done], still)
        reference = self._done[0] if self._done else None
        if REBASELINE in self._gates:
            off = self._gate(RESUME) is Requirement.OFF
            others = self._gates.get(REPEATABILITY), self._gates.get(RESUME)
            self._gates[REBASELINE] = settle(self._gates[REBASELINE], *others, off=off)
        names = [name for name in (GOLDEN, REBASELINE, ATTRIBUTION) if name == GOLDEN or name in self._gates]
        last = [OVERHEAD, RECORDER] if self._on(OVERHEAD) else [RECORDER]
        return Findings(
            order=self._order,
            hardware_class=self._launches.hardware_class,
            started=self._started,
            seconds=time.monotonic() - self._clock,
            gates=tuple(self._gates.get(name) or self._idle(name) for name in (*names, REPEATABILITY, RESUME, *last)),
            golden=self._golden,
            reference=reference,
            environment=reference.environment if reference is not None else None,
            book=self._book,
            new_golden=self._new_golden,
            unexercised=still,
            launches=self._launches,
            launched=tuple(self._done),
            overhead=self._overhead_record,
        )

    def _idle(self, name: str) -> GateReport:
        if name == RECORDER:
            return gates.idle_gate(name, "No launch came to its end.", required=True)
        if not self._on(name):
            return gates.idle_gate(name, "Switched off by the policy.", required=False)
        why = "an earlier gate failed; --keep-going runs it" if self._done else "there is no reference launch"
        if self._done and self._recorder_is_blind():
            why = "the recorder is blind"
        return gates.idle_gate(name, f"Not run: {why}.", required=self._required(name))
