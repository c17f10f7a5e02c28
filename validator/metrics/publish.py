"""Publishing what JSON reports and overhead records say. Whatever goes wrong is a sentence, never an exception: metrics
do not decide a check.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit

from prometheus_client import pushadd_to_gateway

from validator.errors import ValidatorError
from validator.golden import GoldenStore
from validator.metrics.collector import registry_of
from validator.metrics.families import Sample
from validator.metrics.samples import golden_samples, overhead_samples, report_samples, waiver_samples
from validator.metrics.selftest import SCHEMA as SELFTEST_SCHEMA
from validator.metrics.selftest import checked_selftest, selftest_samples
from validator.metrics.textfile import write_textfile
from validator.overhead.record import SCHEMA as OVERHEAD_SCHEMA
from validator.overhead.record import checked, read_record
from validator.pipeline import find_pipelines, load_pipeline
from validator.report.reading import read_report

#: The job under which a Pushgateway keeps what is pushed.
JOB = "validator"

_TIMEOUT_SECONDS = 10.0

_SCHEMES = ("http", "https")

#: Events of GitHub Actions whose runs may be pushed, where they run the default branch.
_EVENTS = ("push", "schedule", "workflow_dispatch")

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Source:
    """One file's samples, and when what it tells of began (ISO time)."""

    key: Key
    started: str
    samples: tuple[Sample, ...]


def publish(
    files: Sequence[Path], gateway: str | None, textfile: str | None, root: Path, environment: Mapping[str, str]
) -> list[str]:
    """Push what ``files`` say to ``gateway``, write it to ``textfile``, or both; a sentence for all that goes wrong."""
    lines: list[str] = []
    sources = list(_sources(files, lines))
    lines += _unusable_context(sources, root)
    grouped = _grouped(sources, root)
    if textfile is not None and grouped:
        try:
            lines += write_textfile(Path(textfile), (sample for samples in grouped.values() for sample in samples))
        except ValidatorError as error:
            lines.append(str(error))
    if gateway is not None and grouped:
        refusal = may_not_push(environment)
        lines += [refusal] if refusal else _push(gateway, grouped)
    return lines


def may_not_push(environment: Mapping[str, str]) -> str:
    """Why a run in this environment is not pushed; empty where it may be.

    Outside GitHub Actions nothing is known, and whoever asks for a push has it. Inside, only runs of the default branch
    are pushed: one of a pull request would overwrite main's curve.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return ""
    event, ref = environment.get("GITHUB_EVENT_NAME", ""), environment.get("GITHUB_REF", "")
    if event not in _EVENTS:
        return f"Metrics are not pushed: the event is {event!r}; pushed are {', '.join(_EVENTS)} of the default branch."
    default = _default_branch(environment.get("GITHUB_EVENT_PATH"))
    if default is None:
        return "Metrics are not pushed: the event does not say which branch is the default."
    if ref != f"refs/heads/{default}":
        return f"Metrics are not pushed: the run is of {ref!r}; pushed are those of refs/heads/{default}."
    return ""


def _default_branch(event_file: str | None) -> str | None:
    try:
        event: Any = json.loads(Path(event_file or "").read_text(encoding="utf-8"))
        return str(event["repository"]["default_branch"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _sources(files: Iterable[Path], problems: list[str]) -> Iterator[Source]:
    """What can be read of ``files``; what cannot, and what is stamped, is named in ``problems`` and skipped."""
    for file in files:
        try:
            source, stamps = _read(file)
        except ValidatorError as error:
            problems.append(f"Skipped: {error}")
            continue
        if stamps:
            problems.append(f"Skipped: {file} is stamped ({', '.join(stamps)}), and a stamped run is not published.")
        elif source.samples:
            yield source
        else:
            problems.append(
                f"Skipped: {file} is a first look, a noise measurement or a quick self-test, which belongs to no curve."
            )


def _read(file: Path) -> tuple[Source, tuple[str, ...]]:
    content: Any = None
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        schema = content.get("schema")
    except (OSError, ValueError, AttributeError, RecursionError):
        schema = None
    if schema == SELFTEST_SCHEMA:
        record = checked_selftest(content, str(file))
        key = record["pipeline"], record["hardware_class"]
        return Source(key, record["started"], tuple(selftest_samples(record))), tuple(record["stamps"])
    if schema == OVERHEAD_SCHEMA:
        record = read_record(file)
        key = record["pipeline"], record["hardware_class"]
        return Source(key, record["started"], tuple(overhead_samples(record))), tuple(record["stamps"])
    report = read_report(file)
    if report.overhead is not None:
        checked(report.overhead, f"{file}: overhead")
    return Source(
        (report.pipeline, report.hardware_class), report.started, tuple(report_samples(report))
    ), report.stamps


def _grouped(sources: Iterable[Source], root: Path) -> dict[Key, list[Sample]]:
    """All samples by pipeline and hardware class, older files first so that newer ones count."""
    grouped: dict[Key, list[Sample]] = {}
    for source in sorted(sources, key=lambda source: source.started):
        grouped.setdefault(source.key, []).extend(source.samples)
    return {key: [*samples, *_context(key, root)] for key, samples in grouped.items()}


def _context(key: Key, root: Path) -> Iterator[Sample]:
    """What the project says about a key: its golden and its pipeline's waivers, as far as they can be read."""
    name, hardware_class = key
    try:
        golden = GoldenStore(root / "golden").record(name, hardware_class)
        yield from golden_samples([golden] if golden is not None else [])
    except ValidatorError:
        pass
    for file in find_pipelines(root):
        if file.stem == name:
            try:
                yield from waiver_samples(load_pipeline(file, root), hardware_class)
            except ValidatorError:
                pass


def _unusable_context(sources: Iterable[Source], root: Path) -> Iterator[str]:
    """Sentences for goldens and pipelines that cannot be read."""
    names = {source.key[0] for source in sources}
    for source in sources:
        try:
            GoldenStore(root / "golden").record(*source.key)
        except ValidatorError as error:
            yield f"Left out: {error}"
    for file in find_pipelines(root):
        if file.stem in names:
            try:
                load_pipeline(file, root)
            except ValidatorError as error:
                yield f"Left out: {error}"


def _push(gateway: str, grouped: Mapping[Key, Sequence[Sample]]) -> Iterator[str]:
    shown = _address(gateway)
    if not shown:
        yield f"Metrics are not pushed: {gateway!r} is no address; --push takes one like http://pushgateway:9091."
        return
    for (pipeline, hardware_class), samples in grouped.items():
        grouping = {"pipeline": pipeline, "hardware_class": hardware_class}
        try:
            pushadd_to_gateway(gateway, JOB, registry_of(samples), grouping, timeout=_TIMEOUT_SECONDS)
        except (URLError, OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            yield f"Metrics of {pipeline} on {hardware_class} were not pushed ({shown}: {reason}); the verdict stands."


def _address(gateway: str) -> str:
    """The gateway's address without a password, as messages show it; empty where it is none."""
    try:
        address = urlsplit(gateway if "://" in gateway else f"http://{gateway}")
        port = f":{address.port}" if address.port else ""
    except ValueError:
        return ""
    return f"{address.scheme}://{address.hostname}{port}" if address.scheme in _SCHEMES and address.hostname else ""
