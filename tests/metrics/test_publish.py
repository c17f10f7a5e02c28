"""Ways out: what is pushed or written, what is refused, and what is skipped with a word."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from tests.overhead.test_record import record
from tests.report.samples import changed, passing
from validator.metrics.collector import SampleCollector, registry_of
from validator.metrics.publish import may_not_push, publish
from validator.metrics.samples import report_samples
from validator.overhead.record import render
from validator.report.json import render_json
from validator.report.model import Report


def written(folder: Path, report: Report, name: str = "report.json") -> Path:
    file = folder / name
    file.write_text(render_json(replace(report, stamps=())))
    return file


def read(file: Path) -> dict[tuple[str, str], float]:
    """The values without labels of their own, by name and pipeline."""
    return {
        (sample.name, sample.labels["pipeline"]): sample.value
        for family in text_string_to_metric_families(file.read_text())
        for sample in family.samples
    }


def event(folder: Path, default: str | None) -> str:
    file = folder / "event.json"
    file.write_text(json.dumps({"repository": {"default_branch": default}} if default else {}))
    return str(file)


@pytest.mark.parametrize(
    ("variables", "allowed"),
    [
        ({}, True),
        ({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "schedule", "GITHUB_REF": "refs/heads/main"}, True),
        ({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push", "GITHUB_REF": "refs/heads/main"}, True),
        ({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push", "GITHUB_REF": "refs/heads/feature"}, False),
        ({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "push", "GITHUB_REF": "refs/tags/main"}, False),
        ({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_REF": "refs/pull/7/merge"}, False),
        (
            {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "pull_request_target", "GITHUB_REF": "refs/heads/main"},
            False,
        ),
        ({"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": "merge_group", "GITHUB_REF": "refs/heads/main"}, False),
        ({"GITHUB_ACTIONS": "true"}, False),
    ],
)
def test_only_the_default_branch_pushes(tmp_path: Path, variables: Mapping[str, str], allowed: bool) -> None:
    refusal = may_not_push({**variables, "GITHUB_EVENT_PATH": event(tmp_path, "main")})
    assert (refusal == "") is allowed
    if "GITHUB_ACTIONS" in variables and allowed:
        assert may_not_push({**variables, "GITHUB_EVENT_PATH": event(tmp_path, None)}) != ""
        assert may_not_push({**variables, "GITHUB_EVENT_PATH": str(tmp_path / "none")}) != ""


def test_files_that_cannot_be_read_are_named_and_the_others_published(tmp_path: Path) -> None:
    good = written(tmp_path, passing())
    broken, future, foreign, half = (tmp_path / name for name in ("broken", "future", "foreign", "half"))
    broken.write_text("{")
    document = json.loads(good.read_text())
    future.write_text(json.dumps({**document, "version": 99}))
    foreign.write_text('{"schema": "another"}')
    half.write_text(render(record())[:300])
    later = tmp_path / "later"
    later.write_text(json.dumps({**record(), "version": 3}))
    missing = tmp_path / "missing"
    target = tmp_path / "out.prom"
    files = [broken, future, foreign, half, later, missing, good]
    lines = publish(files, None, str(target), tmp_path, {})
    for file in files[:-1]:
        assert sum(line.startswith("Skipped: ") and str(file) in line for line in lines) == 1, file
    assert read(target)["validator_check_duration_seconds", passing().pipeline] == passing().seconds


def test_a_record_whose_measurement_is_broken_is_named_and_skipped(tmp_path: Path) -> None:
    file = written(tmp_path, replace(passing(), overhead={"schema": "validator/overhead", "version": 2}))
    target = tmp_path / "out.prom"
    (line,) = publish([file], None, str(target), tmp_path, {})
    assert line.startswith("Skipped: ")
    assert str(file) in line
    assert not target.exists()


def test_a_stamped_run_is_not_published(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(render_json(replace(passing(), stamps=("--env A=1",))))
    (line,) = publish([file], "127.0.0.1:1", str(tmp_path / "out.prom"), tmp_path, {})
    assert "is stamped (--env A=1)" in line
    assert not (tmp_path / "out.prom").exists()


def test_a_textfile_keeps_other_pipelines_and_the_last_success(tmp_path: Path) -> None:
    target = str(tmp_path / "validator.prom")
    good = replace(passing(), pipeline="one", hardware_class="h", started="2026-11-29T12:00:00+00:00", seconds=1.0)
    bad = replace(changed(), pipeline="one", hardware_class="h", started="2026-11-30T12:00:00+00:00", seconds=2.0)
    other = replace(passing(), pipeline="two", hardware_class="h", seconds=3.0)
    for report in (good, other, bad):
        assert publish([written(tmp_path, report)], None, target, tmp_path, {}) == []
    found = read(tmp_path / "validator.prom")
    assert found["validator_check_duration_seconds", "one"] == 2.0
    assert found["validator_check_duration_seconds", "two"] == 3.0
    assert found["validator_check_last_success_timestamp_seconds", "one"] == 20786 * 86400 + 12 * 3600 + 1


def test_a_textfile_keeps_what_only_another_run_measured(tmp_path: Path) -> None:
    """A check without an overhead, after a measurement of it, takes nothing away."""
    target = str(tmp_path / "validator.prom")
    measured = {**record(), "pipeline": "one", "hardware_class": "h"}
    (tmp_path / "overhead.json").write_text(render(measured))
    report = replace(passing(), pipeline="one", hardware_class="h", seconds=2.0)
    for file in (tmp_path / "overhead.json", written(tmp_path, report)):
        assert publish([file], None, target, tmp_path, {}) == []
    found = read(tmp_path / "validator.prom")
    assert found["validator_overhead_ratio", "one"] == measured["overhead"]["estimate"]
    assert found["validator_check_duration_seconds", "one"] == 2.0


def test_a_port_that_speaks_something_else_is_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        (line,) = publish([written(tmp_path, passing())], address, None, tmp_path, {})
        thread.join()
    assert "were not pushed" in line
    assert "the verdict stands" in line


def test_a_textfile_that_was_no_metrics_is_named_and_written_anew(tmp_path: Path) -> None:
    target = tmp_path / "validator.prom"
    target.write_text("}{ no metrics")
    (line,) = publish([written(tmp_path, passing())], None, str(target), tmp_path, {})
    assert f"{target} held no metrics of ours" in line
    assert ("validator_check_duration_seconds", passing().pipeline) in read(target)


def test_of_two_files_about_one_pipeline_the_newer_counts(tmp_path: Path) -> None:
    old = replace(passing(), pipeline="one", started="2026-11-29T12:00:00+00:00", seconds=1.0)
    new = replace(passing(), pipeline="one", started="2026-11-30T12:00:00+00:00", seconds=2.0)
    files = [written(tmp_path, new, "new.json"), written(tmp_path, old, "old.json")]
    publish(files, None, str(tmp_path / "out.prom"), tmp_path, {})
    assert read(tmp_path / "out.prom")["validator_check_duration_seconds", "one"] == 2.0


@pytest.mark.parametrize(
    "gateway",
    ["127.0.0.1:1", "http://127.0.0.1:1", "ftp://host", "http://", "http://[::1", "http://127.0.0.1:1/a b"],
)
def test_a_gateway_that_cannot_be_pushed_to_is_a_sentence(tmp_path: Path, gateway: str) -> None:
    lines = publish([written(tmp_path, passing())], gateway, None, tmp_path, {})
    assert len(lines) == 1
    assert "not pushed" in lines[0]


def test_a_textfile_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    lines = publish([written(tmp_path, passing())], None, str(tmp_path / "file" / "x.prom"), tmp_path, {})
    assert len(lines) == 1
    assert "cannot be written" in lines[0]


def test_a_registry_shows_what_its_source_says_at_each_scrape() -> None:
    reports = [passing()]
    registry = registry_of([])
    registry.register(SampleCollector(lambda: (sample for report in reports for sample in report_samples(report))))
    before = generate_latest(registry).decode()
    reports[0] = replace(passing(), seconds=77.0)
    assert "validator_check_duration_seconds" in before
    assert " 77.0\n" in generate_latest(registry).decode()
    assert "# TYPE validator_check_duration_seconds gauge" in before
