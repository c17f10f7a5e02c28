"""Figures for Prometheus, read from the database when asked for: they outlive the process. Labels are bounded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Select, func, select

from validator.errors import ValidatorError
from validator.golden import GoldenStore
from validator.metrics.collector import SampleCollector
from validator.metrics.families import Sample
from validator.metrics.samples import golden_samples, report_samples, waiver_samples
from validator.pipeline import load_pipeline
from validator.service.core import Service
from validator.service.database import StorageError
from validator.service.tables import OPEN, Delivery, Job, Publication, Request, Result, State


def registry(service: Service) -> CollectorRegistry:
    """A registry that reads the service's figures at every scrape."""
    found = CollectorRegistry(auto_describe=False)
    found.register(_Figures(service))
    found.register(SampleCollector(lambda: _samples(service)))
    return found


class _Figures(Collector):
    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("validator_service_ready", "1 where webhooks can be stored and jobs go on, else 0.")
        up.add_metric([], 0.0 if self._service.problems() else 1.0)
        yield up
        try:
            yield from self._stored()
        except StorageError:
            return

    def _stored(self) -> Iterator[Metric]:
        now = time.time()
        with self._service.database.read() as session:
            jobs = GaugeMetricFamily("validator_service_jobs", "Jobs by state.", labels=["state"])
            by_state = session.execute(select(Job.state, func.count()).group_by(Job.state))
            counted = {State(state): number for state, number in by_state}
            for state in State:
                jobs.add_metric([state.value], counted.get(state, 0))
            yield jobs
            oldest = session.scalar(select(func.min(Job.created)).where(Job.state.in_(OPEN)))
            age = GaugeMetricFamily(
                "validator_service_oldest_open_job_seconds", "Age of the oldest job that has not ended."
            )
            age.add_metric([], now - oldest if oldest is not None else 0.0)
            yield age
            hooks = CounterMetricFamily(
                "validator_service_webhooks", "Authenticated webhooks.", labels=["event", "outcome"]
            )
            for event, outcome, number in session.execute(
                select(Delivery.event, Delivery.outcome, func.count()).group_by(Delivery.event, Delivery.outcome)
            ):
                hooks.add_metric([event, outcome], number)
            yield hooks
            results = CounterMetricFamily(
                "validator_service_results", "Results taken in.", labels=["pipeline", "hardware_class", "verdict"]
            )
            for pipeline, hardware_class, verdict, number in session.execute(
                select(Result.pipeline, Result.hardware_class, Result.verdict, func.count()).group_by(
                    Result.pipeline, Result.hardware_class, Result.verdict
                )
            ):
                results.add_metric([pipeline, hardware_class, verdict], number)
            yield results
            behind = GaugeMetricFamily(
                "validator_service_check_runs_behind", "Check runs that do not show their job yet."
            )
            late = select(func.count()).select_from(Publication).where(Publication.done < Publication.wanted)
            publishes = any(loop.name == "publishing" for loop in self._service.loops)
            behind.add_metric([], (session.scalar(late) or 0) if publishes else 0)
            yield behind
            asked = CounterMetricFamily(
                "validator_service_requests", "What people asked for.", labels=["kind", "state"]
            )
            for kind, how, number in session.execute(
                select(Request.kind, Request.state, func.count()).group_by(Request.kind, Request.state)
            ):
                asked.add_metric([kind, how], number)
            yield asked


def _newest() -> Select[Result]:
    """The latest deciding result of every pipeline and hardware class on a branch."""
    newest = (
        select(func.max(Result.id))
        .join(Job, Job.id == Result.job_id)
        .where(Result.gating, Job.line.startswith("branch "))
        .group_by(Result.pipeline, Result.hardware_class)
    )
    return select(Result).where(Result.id.in_(newest))


def _samples(service: Service) -> Iterator[Sample]:
    """What the newest check of every pipeline and hardware class on a branch says, as a check itself would push it."""
    try:
        with service.database.read() as session:
            newest = session.scalars(_newest()).all()
    except StorageError:
        return
    for result in newest:
        report = service.intake.document(result.job_id, result.attempt)
        if report is not None:
            yield from report_samples(report)
        with suppress(ValidatorError):
            yield from waiver_samples(load_pipeline(result.pipeline, service.settings.root), result.hardware_class)
    with suppress(ValidatorError):
        yield from golden_samples(GoldenStore(service.settings.root / "golden").list())
