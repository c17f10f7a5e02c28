"""Samples as prometheus-client wants them: a collector for any registry, so for the service's ``/metrics`` too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from validator.metrics.families import KEY, Sample, by_family


@final
class SampleCollector(Collector):
    """Asks ``source`` for the samples at every scrape."""

    def __init__(self, source: Callable[[], Iterable[Sample]]) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        for family, samples in by_family(self._source()):
            labels = [*KEY, *family.labels]
            gauge = GaugeMetricFamily(family.name, family.help, labels=labels)
            for sample in samples:
                gauge.add_metric([sample.labels[label] for label in labels], sample.value)
            yield gauge


def registry_of(samples: Iterable[Sample]) -> CollectorRegistry:
    """A registry of just these samples."""
    kept = list(samples)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(SampleCollector(lambda: kept))
    return registry
