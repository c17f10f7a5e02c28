"""The gates judged again from trajectories alone: what a result claims counts only where its bits say the same."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from validator.check import gates, plan
from validator.check.base import Base
from validator.check.findings import environment_rows, step_rows
from validator.check.rebaseline import InvalidGoldenError, invalid_gate, rebaseline_gate, settle, valid_golden
from validator.check.report import golden_facts, policy_rows, sentence_of
from validator.check.verdict import GOLDEN, REBASELINE, RECORDER, REPEATABILITY, RESUME, headline
from validator.check.waivers import WaiverBook
from validator.environment import Environment
from validator.errors import TrajectoryError, ValidatorError
from validator.golden import Golden, GoldenStore
from validator.pipeline import Gate, Pipeline, Requirement
from validator.report.model import GateReport, Localisation, Outcome, Report, Verdict
from validator.trajectory.layout import ENVIRONMENT
from validator.trajectory.reader import Trajectory
from validator.trajectory.seal import seal

#: Gates whose outcome is worked out again; the others' is taken as it is claimed.
_ANEW = (GOLDEN, REBASELINE, REPEATABILITY, RESUME)


class ContradictedError(ValidatorError):
    """A result claims what its trajectories do not say."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What a result is judged by: the pipeline with the base's policy, the base, and the goldens of the change."""

    pipeline: Pipeline
    base: Base
    head: GoldenStore
    today: date


def judge_anew(claimed: Report, trajectory: Callable[[str], Path], grounds: Grounds) -> Report:
    """The report with verdict and gates worked out again; ``trajectory`` says where a launch's files lie.

    A claim of success that the trajectories do not bear out becomes ``error``, and so does one whose trajectories are
    missing. Other claims are never made better.
    """
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = _judged(claimed, trajectory, grounds, Path(scratch))
        except Exception as error:  # a forged file may do anything to a reader; it never makes a pass
            if claimed.verdict.exit_code:
                return replace(claimed, policy_changes=policy_rows(grounds.base), base=grounds.base.revision)
            why = str(error) if isinstance(error, ValidatorError) else type(error).__name__
            return _error(claimed, f"The result claims {claimed.verdict}, and its trajectories cannot be judged: {why}")
    if found.verdict is not claimed.verdict and not (claimed.verdict.exit_code and found.verdict.exit_code):
        return _error(
            found, f"The result claims {claimed.verdict}; its trajectories say {found.verdict}: {found.sentence}"
        )
    return found


def _judged(claimed: Report, place: Callable[[str], Path], grounds: Grounds, scratch: Path) -> Report:
    pipeline, policy = grounds.pipeline, grounds.pipeline.policy
    key = (pipeline.name, claimed.hardware_class)
    reference = reseal(place("reference"), scratch / "reference", claimed)
    golden = grounds.base.goldens.find(*key)
    where = str(golden.folder if golden else "the base revision")
    judged: dict[str, GateReport] = {}
    if policy.gates[Gate.GOLDEN] is not Requirement.OFF:
        required = policy.gates[Gate.GOLDEN] is Requirement.REQUIRED
        judged[GOLDEN] = gates.golden_gate(
            golden.trajectory if golden else None, reference, required=required, where=where
        )
    new = _new_golden(grounds, key, golden, reference, judged)
    rebaselined = REBASELINE in judged and judged[REBASELINE].outcome is Outcome.HOLDS
    if rebaselined:
        judged[GOLDEN] = replace(judged[GOLDEN], required=False)
    _repeatability(judged, grounds, golden, reference, place, scratch, claimed, required=rebaselined)
    _resume(judged, grounds, reference, place, scratch, claimed, required=rebaselined)
    off = policy.gates[Gate.RESUME] is Requirement.OFF
    if REBASELINE in judged:
        judged[REBASELINE] = settle(judged[REBASELINE], judged.get(REPEATABILITY), judged.get(RESUME), off=off)
    rows = _merged(claimed.gates, judged, policy.gates)
    verdict = headline(rows)
    return replace(
        claimed,
        verdict=verdict,
        sentence=sentence_of(verdict, rows),
        gates=rows,
        golden=golden_facts(golden),
        new_golden=golden_facts(new),
        environment_difference=(
            environment_rows(Environment.from_json(golden.trajectory.environment), _environment(reference))
            if golden
            else ()
        ),
        steps=step_rows(reference),
        policy_changes=policy_rows(grounds.base),
        base=grounds.base.revision,
    )


def reseal(source: Path, target: Path, claimed: Report) -> Trajectory:
    """The trajectory sealed again from its ranks' own files, so that no index or digest is taken on trust.

    Raises ``TrajectoryError`` where a file is missing or not what a recorder writes.
    """
    target.mkdir(parents=True)
    for file in sorted(source.glob("rank-*")):
        if file.is_symlink() or not file.is_file():
            raise TrajectoryError(f"{file} is no plain file.")
        shutil.copyfile(file, target / file.name)
    if not any(target.iterdir()):
        raise TrajectoryError(f"The launch {source.parent.name} left no trajectory.")
    header = {
        "pipeline": claimed.pipeline,
        "hardware_class": claimed.hardware_class,
        "stamps": list(claimed.stamps),
    }
    return seal(target, header, _claimed_environment(source / ENVIRONMENT))


def _new_golden(
    grounds: Grounds, key: tuple[str, str], golden: Golden | None, reference: Trajectory, judged: dict[str, GateReport]
) -> Golden | None:
    if GOLDEN not in judged or not grounds.base.changes_golden(grounds.head, *key):
        return None
    off = grounds.pipeline.policy.gates[Gate.RESUME] is Requirement.OFF
    try:
        new = valid_golden(grounds.head, *key, golden, resume_is_off=off)
    except InvalidGoldenError as error:
        judged[REBASELINE] = invalid_gate(error)
        return None
    judged[REBASELINE] = rebaseline_gate(new, reference)
    return new


def _repeatability(
    judged: dict[str, GateReport], grounds: Grounds, golden: Golden | None, reference: Trajectory,
    place: Callable[[str], Path], scratch: Path, claimed: Report, *, required: bool,
) -> None:  # fmt: skip
    requirement = grounds.pipeline.policy.gates[Gate.REPEATABILITY]
    if requirement is Requirement.OFF and not required:
        return
    required = required or requirement is Requirement.REQUIRED
    if golden is not None and GOLDEN in judged and judged[GOLDEN].outcome is Outcome.HOLDS:
        judged[REPEATABILITY] = gates.repeatability_gate(
            reference, (), required=required, golden_launches=golden.record.launches
        )
        return
    again = reseal(place(plan.repeat().name), scratch / "repeat", claimed)
    judged[REPEATABILITY] = gates.repeatability_gate(reference, [again], required=required)


def _resume(
    judged: dict[str, GateReport], grounds: Grounds, reference: Trajectory,
    place: Callable[[str], Path], scratch: Path, claimed: Report, *, required: bool,
) -> None:  # fmt: skip
    policy = grounds.pipeline.policy
    if policy.gates[Gate.RESUME] is Requirement.OFF:
        return
    required = required or policy.gates[Gate.RESUME] is Requirement.REQUIRED
    claims = {gate.name: gate for gate in claimed.gates}
    if RESUME in claims and claims[RESUME].outcome is Outcome.NOT_RUN:
        judged[RESUME] = replace(claims[RESUME], required=required)
        return
    segments = [
        gates.Segment(segment, reseal(place(segment.name), scratch / segment.name, claimed))
        for segment in plan.resume_chain(policy)
    ]
    book = WaiverBook(RESUME, policy.waivers, grounds.today)
    judged[RESUME] = gates.resume_gate(reference, segments, book, required=required)


def _merged(
    claimed: tuple[GateReport, ...], judged: Mapping[str, GateReport], policy: Mapping[Gate, Requirement]
) -> tuple[GateReport, ...]:
    """The gates worked out again first, then the others as claimed, each as required as the policy has it."""
    claims = {gate.name: gate for gate in claimed}
    seconds = {name: gate.seconds for name, gate in claims.items()}
    own = [
        replace(
            judged[name], seconds=seconds.get(name, 0.0), localisation=_claimed_place(judged[name], claims.get(name))
        )
        for name in _ANEW
        if name in judged
    ]
    requirements = {str(gate): requirement for gate, requirement in policy.items()}
    requirements[RECORDER] = Requirement.REQUIRED
    for name in dict.fromkeys([*requirements, *claims]):
        requirement = requirements.get(name, Requirement.ADVISORY)
        if name in judged or name == REBASELINE or requirement is Requirement.OFF:
            continue
        absent = GateReport(name, Outcome.ERROR, True, f"The result says nothing of the {name} gate.")
        own.append(replace(claims.get(name, absent), required=requirement is Requirement.REQUIRED))
    return tuple(own)


def _claimed_place(judged: GateReport, claimed: GateReport | None) -> Localisation | None:
    """Where in the code, as the result tells it: an explanation of a difference that the trajectories do have."""
    return None if claimed is None or judged.divergence is None else claimed.localisation


def _error(report: Report, sentence: str) -> Report:
    return replace(report, verdict=Verdict.ERROR, sentence=sentence, next_step="Look at the launch's log.")


def _environment(trajectory: Trajectory) -> Environment:
    try:
        return Environment.from_json(trajectory.environment)
    except TrajectoryError:
        return Environment({})


def _claimed_environment(file: Path) -> Mapping[str, object]:
    try:
        if file.is_symlink():
            return {}
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
