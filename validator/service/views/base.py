"""What the base revision has: goldens with their chain, waivers, pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

from validator.errors import ValidatorError
from validator.golden import GoldenStore, log
from validator.golden.history import NoHistoryError
from validator.pipeline import find_pipelines, load_pipeline
from validator.service.settings import Settings
from validator.service.views.models import GoldenVersion, GoldenView, WaiverView


def goldens(settings: Settings) -> list[GoldenView]:
    """All goldens of the base revision, with their chain."""
    store = GoldenStore(settings.root / "golden")
    return [_golden(store, *key) for key in store.keys()]  # noqa: SIM118 - no mapping


def waivers(settings: Settings, today: date | None = None) -> list[WaiverView]:
    """All waivers of the base revision, the next to expire first. A pipeline that is not valid has none."""
    today = today or datetime.now(UTC).date()
    found = []
    for file in find_pipelines(settings.root):
        try:
            pipeline = load_pipeline(file, settings.root)
        except ValidatorError:
            continue
        found += [
            WaiverView(
                pipeline=pipeline.name, gate=waiver.gate, leaf=waiver.name, reason=waiver.reason, link=waiver.link,
                expires=waiver.expires, days_left=(waiver.expires - today).days,
            )
            for waiver in pipeline.policy.waivers
        ]  # fmt: skip
    return sorted(found, key=lambda waiver: (waiver.expires, waiver.pipeline, waiver.leaf))


def pipelines_of(settings: Settings) -> Sequence[str]:
    """Names of the pipelines that an event calls for."""
    return settings.pipelines or tuple(file.stem for file in find_pipelines(settings.root))


def _golden(store: GoldenStore, pipeline: str, hardware_class: str) -> GoldenView:
    try:
        record = store.record(pipeline, hardware_class)
    except ValidatorError as error:
        return GoldenView(
            pipeline=pipeline, hardware_class=hardware_class, digest="", recorded=date(1970, 1, 1), approver="",
            requester="", reason="", change=None, launches=0, resume="", supersedes=None, chain=[], problem=str(error),
        )  # fmt: skip
    assert record is not None
    try:
        versions, problem = tuple(log(store, pipeline, hardware_class)), ""
    except NoHistoryError as error:
        versions, problem = (), str(error)
    chain = [
        GoldenVersion(
            commit=version.commit.identity, date=version.commit.date, author=version.commit.author,
            digest="" if version.record is None else version.record.digest,
            approver="" if version.record is None else version.record.approver,
            reason="" if version.record is None else version.record.reason,
        )
        for version in versions
    ]  # fmt: skip
    return GoldenView(
        pipeline=pipeline, hardware_class=hardware_class, digest=record.digest, recorded=record.recorded,
        approver=record.approver, requester=record.requester, reason=record.reason, change=record.change,
        launches=record.launches, resume=record.resume, supersedes=record.supersedes, chain=chain, problem=problem,
    )  # fmt: skip
