"""A file for node_exporter's textfile collector, which holds the last state of every pipeline that ran on this host."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from validator.check.out import write_whole
from validator.metrics.collector import registry_of
from validator.metrics.families import FAMILIES, Sample


def write_textfile(file: Path, samples: Iterable[Sample]) -> list[str]:
    """Put ``samples`` into ``file``, whole or not at all; returns a sentence for an old content that was no metrics.

    As a Pushgateway does it: of a pipeline on a hardware class, metrics with a new sample are replaced, and all others
    stay. Raises ``LaunchError`` where it cannot be written.
    """
    new = list(samples)
    replaced = {(sample.name, sample.key) for sample in new}
    old, problems = _read(file)
    kept = [sample for sample in old if (sample.name, sample.key) not in replaced]
    write_whole(file, generate_latest(registry_of([*kept, *new])).decode("utf-8"))
    return problems


def _read(file: Path) -> tuple[list[Sample], list[str]]:
    try:
        text = file.read_text(encoding="utf-8")
        return [
            Sample(sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name in FAMILIES
        ], []
    except FileNotFoundError:
        return [], []
    except (OSError, ValueError, KeyError, IndexError) as error:
        return [], [f"{file} held no metrics of ours ({type(error).__name__}); it is written anew."]
