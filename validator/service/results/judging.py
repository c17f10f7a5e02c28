"""Judges a result anew by the base revision: what a runner says of itself is a claim."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path

from jsonschema import Draft202012Validator

from validator.check.anew import Grounds
from validator.check.base import Base, read_base_of
from validator.errors import UsageError, ValidatorError
from validator.golden import Golden, GoldenStore
from validator.overhead.anew import judge as judge_again
from validator.overhead.record import checked
from validator.pipeline import load_pipeline
from validator.report.json import report_schema
from validator.report.model import Report, Verdict
from validator.report.reading import from_document
from validator.service.clone import Clone, CloneError
from validator.service.database import StorageError
from validator.service.results.pack import REPORT, ContentError
from validator.trajectory.layout import SUMMARY
from validator.trajectory.reader import Trajectory


@dataclass(frozen=True, slots=True)
class Judged:
    """The report as it counts. ``claimed`` is the runner's verdict; ``golden`` what was compared with; ``gating`` is
    false for a stamped run, which decides nothing.
    """

    report: Report
    claimed: Verdict
    golden: Golden | None
    gating: bool


def judge(
    folder: Path, pipeline: str, root: Path, commit: str, scratch: Path, today: date, clone: Clone | None = None
) -> Judged:
    """Judge the unpacked result in ``folder`` as one of ``commit`` by the base revision checked out at ``root``.
    ``clone`` fetches the commit, for the golden that may come with it.

    Raises ``ContentError`` where it is not a result of ``pipeline``.
    """
    claimed = _claimed(folder / REPORT)
    if claimed.pipeline != pipeline:
        raise ContentError(f"The result is of the pipeline {claimed.pipeline[:100]!r}, asked for is {pipeline!r}.")
    if not claimed.hardware_class.replace("-", "").replace(".", "").replace("_", "").isalnum():
        raise ContentError(f"The result names the hardware class {claimed.hardware_class[:100]!r}.")
    try:
        grounds = _grounds(pipeline, root, commit, scratch, today, clone)
    except CloneError as error:
        if error.may_come and claimed.verdict is Verdict.REBASELINED:
            raise StorageError(f"The golden that comes with {commit[:12]} cannot be had now: {error}") from error
        grounds = _checked_out(pipeline, root, today)

    def place(launch: str) -> Path:
        return folder / "launches" / launch / "trajectory"

    _insist_on_origin(place("reference"), claimed)
    report = judge_again(claimed, place, grounds)
    try:
        golden = grounds.base.goldens.find(pipeline, claimed.hardware_class)
    except ValidatorError:
        golden = None
    return Judged(replace(report, out=""), claimed.verdict, golden, not report.stamps)


def _claimed(file: Path) -> Report:
    try:
        document = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ContentError("The report is no JSON.") from error
    problem = next(Draft202012Validator(report_schema()).iter_errors(document), None)
    if problem is not None:
        where = "/".join(map(str, problem.absolute_path))
        raise ContentError(f"The report does not fit its schema at {where[:200] or 'its top'}.")
    try:
        claimed = from_document(document, REPORT)
        if claimed.overhead is not None:
            checked(claimed.overhead, f"{REPORT}: overhead")
    except (ValidatorError, RecursionError) as error:
        raise ContentError(str(error)[:500]) from error
    return claimed


def _insist_on_origin(reference: Path, claimed: Report) -> None:
    """The reference launch names itself what the report says, and its stamps are the report's."""
    if not (reference / SUMMARY).is_file():
        return  # it failed, or has to be judged without
    try:
        header = Trajectory.open(reference, verify=False).header
        found = (header.get("pipeline"), header.get("hardware_class"), tuple(header.get("stamps") or ()))
    except Exception as error:  # a forged file may do anything to a reader
        raise ContentError("The trajectory of the reference launch is not what a launch leaves behind.") from error
    if found[:2] != (claimed.pipeline, claimed.hardware_class):
        raise ContentError("The reference launch is of another pipeline or hardware class than the report.")
    if set(found[2]) != set(claimed.stamps):
        raise ContentError("The reference launch is stamped otherwise than the report says.")


def _grounds(
    pipeline: str, root: Path, commit: str, scratch: Path, today: date, clone: Clone | None
) -> Grounds:  # fmt: skip
    """The base revision is what is checked out; a golden that comes with the commit is read from git, where it is."""
    place, revision = (root, "HEAD") if clone is None else (clone.with_commits(commit), clone.base())
    try:
        found, base, head = read_base_of(pipeline, place, revision, scratch, commit)
    except ValidatorError:  # no git here, or no such pipeline there
        return _checked_out(pipeline, root, today)
    return Grounds(found, base, head, today)


def _checked_out(pipeline: str, root: Path, today: date) -> Grounds:
    """The base revision's files alone: no golden can come with the commit."""
    store = GoldenStore(root / "golden")
    try:
        found = load_pipeline(pipeline, root)
    except UsageError as error:
        raise ContentError(f"The base revision has no such pipeline: {error}") from error
    return Grounds(found, Base("", store, store, is_new=False, policy_changes=()), store, today)
