"""Proposing new goldens: the launches and the record of DESIGN.md 8, beside what they would replace."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from validator.check.base import Base
from validator.check.findings import divergence_row, environment_rows, step_rows
from validator.compare import compare
from validator.environment import Environment
from validator.errors import TrajectoryError, UsageError
from validator.golden import Golden, GoldenStore
from validator.report.model import EnvironmentDifferenceRow
from validator.report.proposal import Proposal, render_proposals

SCHEMA = "validator/proposal"
VERSION = 1

#: Files of a proposal beside its folder ``golden``.
INDEX, BODY = "proposal.json", "body.md"


def store_for(base: Base, folder: Path, pipeline: str, hardware_class: str) -> GoldenStore:
    """A store below ``folder`` that holds the base's golden of this key, for a new one to supersede."""
    store = GoldenStore(folder / "golden", follows_git=False)
    source, target = (each.folder(pipeline, hardware_class) for each in (base.goldens, store))
    if source.is_dir():
        shutil.copytree(source, target)
    return store


def proposal_of(old: Golden | None, new: Golden) -> Proposal:
    """What the new golden changes. Raises ``UsageError`` where it has the bits of the old one."""
    first = None if old is None else compare(old.trajectory, new.trajectory).first
    if old is not None and first is None:
        raise UsageError(
            f"{new.record.pipeline} computes the bits of its golden {old.digest[:12]}; there is nothing to re-baseline."
        )
    return Proposal(
        pipeline=new.record.pipeline,
        hardware_class=new.record.hardware_class,
        reason=new.record.reason,
        requester=new.record.requester,
        approver=new.record.approver,
        digest=new.digest,
        old_digest=old.digest if old is not None else "",
        drift={name: drift.largest for name, drift in new.record.drift.items()},
        divergence=None if first is None else divergence_row(first),
        environment_difference=() if old is None else _difference(old, new),
        old_steps=() if old is None else step_rows(old.trajectory),
        new_steps=step_rows(new.trajectory),
    )


def write_proposal(folder: Path, commit: str, base: str, proposals: list[Proposal]) -> Path:
    """The index and the body beside the goldens; returns the body's path."""
    index: Mapping[str, object] = {
        "schema": SCHEMA,
        "version": VERSION,
        "commit": commit,
        "base": base,
        "goldens": [[each.pipeline, each.hardware_class, each.digest] for each in proposals],
    }
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="ascii")
    body = folder / BODY
    body.write_text(render_proposals(proposals), encoding="utf-8")
    return body


def _difference(old: Golden, new: Golden) -> tuple[EnvironmentDifferenceRow, ...]:
    try:
        pair = [Environment.from_json(each.trajectory.environment) for each in (old, new)]
    except TrajectoryError:
        return ()
    return environment_rows(*pair)
