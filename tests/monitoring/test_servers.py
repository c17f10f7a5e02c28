"""A check pushes to a real Pushgateway, a real Prometheus scrapes it, and an alert fires in a real Alertmanager."""

from __future__ import annotations

import json
import math
import re
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.monitoring.boards import ROOT, RULE_TESTS, RULES, expressions, rules
from tests.monitoring.servers import Monitoring, free_port, monitoring, wait_for
from tests.project import Project, Ran
from tests.selftest.test_outcome import MODULE
from validator.metrics.families import Sample
from validator.metrics.samples import report_samples
from validator.report.reading import read_report
from validator.selftest.outcome import SelfTestResult

pytestmark = pytest.mark.system

GPU = {
    "sm_clock_mhz": 1755.0, "sm_clock_max_mhz": 1980.0, "temperature_celsius": 71.0, "power_watts": 512.5,
    "power_limit_watts": 700.0, "corrected_memory_errors": 0.0, "uncorrected_memory_errors": 0.0,
    "throttle_reasons": "0x0000000000000004",
}  # fmt: skip
SLOW = {"step_seconds": {"deterministic": 0.13, "default": 0.10}, "jitter": 0.01, "gpu": GPU}
WAIVERS = """\
  waivers:
    - gate: resume
      leaf: rng/cpu
      seen: [{restore: 3, ranks: [0, 1], moments: "entry:3 .. end", observed: "0ea6f75dd3200cb3efb56bcb5c5a88f4"}]
      reason: one draw
      link: https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/5257
      expires: 2099-05-31
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitoring]:
    with monitoring(tmp_path_factory.mktemp("servers")) as running:
        yield running


@pytest.fixture
def tiny(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The project with a waiver and a golden, and a cache and locks of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    project.pipeline.write_text(project.pipeline.read_text() + WAIVERS)
    assert project.record_golden().code == 0
    return project


def test_a_check_is_seen_in_every_panel_and_its_alert_fires(tiny: Project, servers: Monitoring) -> None:
    passed = tiny.check("--push", servers.gateway)
    assert (passed.code, passed.err.count("not pushed")) == (0, 0)
    tiny.double.misbehave(every=SLOW)
    ran = tiny.check("--overhead", "required", "--push", servers.gateway)
    assert (ran.code, ran.verdict) == (1, "over_budget")
    report, record = ran.report, ran.report["overhead"]
    push_selftest(tiny, servers, report)

    key = f'pipeline="tiny",hardware_class="{report["hardware_class"]}"'
    wait_for("the push", lambda: servers.query(f'validator_check_verdict{{{key},verdict="over_budget"}} == 1'))
    expected = {
        "validator_overhead_ratio": record["overhead"]["estimate"],
        "validator_overhead_lower_ratio": record["overhead"]["interval"]["lower"],
        "validator_overhead_upper_ratio": record["overhead"]["interval"]["upper"],
        "validator_overhead_budget_ratio": 0.1,
        "validator_check_duration_seconds": report["seconds"],
        "validator_check_timestamp_seconds": datetime.fromisoformat(report["started"]).timestamp() + report["seconds"],
        "validator_golden_recorded_timestamp_seconds": midnight(report["golden"]["recorded"]),
    }
    for name, value in expected.items():
        assert servers.value(f"{name}{{{key}}}") == pytest.approx(value, rel=1e-9), name
    for arm in record["arms"]:
        seconds = servers.value(f'validator_step_time_seconds{{{key},arm="{arm["name"]}"}}')
        assert seconds == pytest.approx(arm["step_seconds"]["median"])
    assert servers.value(f'validator_gpu_temperature_celsius{{{key},arm="default"}}') == 71.0
    timed = sum(len(arm["launches"]) for arm in record["arms"])
    assert servers.value(f'validator_gpu_held_back_launches{{{key},reason="power limit"}}') == timed
    for gate in report["gates"]:
        (series,) = servers.query(f'validator_gate_outcome{{{key},gate="{gate["name"]}"}} == 1')
        assert series["metric"]["outcome"] == gate["outcome"]
    assert math.isnan(servers.value(f"validator_first_divergent_step{{{key}}}"))
    assert servers.value(f'validator_waivers{{{key},gate="resume"}}') == 1
    # The success of the first check is still there, and older than the check that was over its budget.
    success = servers.value(f"validator_check_last_success_timestamp_seconds{{{key}}}")
    assert success == pytest.approx(
        datetime.fromisoformat(passed.report["started"]).timestamp() + passed.report["seconds"]
    )
    said = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in told(tiny, ran)}
    for place, expression in expressions():
        found = servers.query(expression)
        assert found, f"{place}: {expression} finds nothing"
        assert all(series["metric"].get("pipeline", "tiny") == "tiny" for series in found), place
        plain = PLAIN.fullmatch(expression)
        for series in found if plain else ():
            value = said.get((plain["metric"], frozenset(series["metric"].items())))  # type: ignore[index]
            if value is not None:  # of the golden, the waivers and the self-test, the lines above say
                assert float(series["value"][1]) == pytest.approx(value, rel=1e-9, nan_ok=True), place
    firing = {rule["alert"] for rule in rules() if servers.query(rule["expr"])}
    assert firing == {"ValidatorOverheadOverBudget", "ValidatorGpuHeldBack"}
    expected_alerts = {"ValidatorOverheadOverBudget", "ValidatorGpuHeldBack"}

    def active() -> set[str]:
        labels = [each["labels"] for each in servers.alerts() if each["status"]["state"] == "active"]
        return {each["alertname"] for each in labels if each["pipeline"] == "tiny"}

    wait_for("the alerts", lambda: active() == expected_alerts)


#: A query that is one metric and nothing else, as most of the dashboards' are.
PLAIN = re.compile(r"max by \([\w,]*\) \((?P<metric>validator_\w+)\{[^}]*\}\)")


def told(tiny: Project, ran: Ran) -> list[Sample]:
    """What the report of a check says, metric by metric."""
    file = tiny.folder / "told.json"
    file.write_text(json.dumps(ran.report))
    return list(report_samples(read_report(file)))


def push_selftest(tiny: Project, servers: Monitoring, report: dict[str, Any]) -> None:
    """A self-test's record, as the product writes it, through the command that pushes files."""
    file = tiny.folder / "selftest.json"
    result = SelfTestResult(
        "tiny", report["hardware_class"], report["started"], 60.0, False, True, "Clean is clean.", (MODULE,) * 20
    )
    file.write_text(json.dumps(result.to_json()))
    ran = tiny.run("metrics", str(file), "--push", servers.gateway)
    assert (ran.code, ran.err) == (0, "")


def midnight(day: str) -> float:
    return datetime.fromisoformat(f"{day}T00:00:00+00:00").timestamp()


def test_a_pull_request_never_overwrites_the_curve(
    tiny: Project, servers: Monitoring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = tiny.check("--push", servers.gateway).report
    ended = datetime.fromisoformat(pushed["started"]).timestamp() + pushed["seconds"]

    def shown() -> bool:
        found = servers.query('validator_check_timestamp_seconds{pipeline="tiny"}')
        return [float(series["value"][1]) for series in found] == [pytest.approx(ended, abs=1e-3)]

    wait_for("the push", shown)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"repository": {"default_branch": "main"}}))
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_EVENT_PATH": str(event),
    }.items():
        monkeypatch.setenv(name, value)
    ran = tiny.check("--push", servers.gateway)
    assert ran.code == 0
    assert "Metrics are not pushed: the event is 'pull_request'" in ran.err
    time.sleep(3)  # three scrapes
    assert shown()


def test_a_gateway_that_is_away_changes_no_verdict(tiny: Project) -> None:
    ran = tiny.check("--push", f"http://127.0.0.1:{free_port()}")
    assert (ran.code, ran.verdict) == (0, "pass")
    assert "were not pushed" in ran.err
    assert "the verdict stands" in ran.err


def test_promtool_accepts_rules_and_configuration_and_their_tests_pass() -> None:
    config = ROOT / "prometheus" / "prometheus.yml"
    for words in (["check", "rules", RULES], ["check", "config", config], ["test", "rules", RULE_TESTS]):
        done = subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    amtool = subprocess.run(
        ["amtool", "check-config", str(ROOT / "prometheus" / "alertmanager.yml")], capture_output=True, check=False
    )
    assert amtool.returncode == 0, amtool.stderr


def test_promtool_refuses_a_rule_that_is_wrong(tmp_path: Path) -> None:
    broken = tmp_path / "rules.yml"
    broken.write_text(RULES.read_text().replace("== 1", "=== 1", 1))
    done = subprocess.run(["promtool", "check", "rules", str(broken)], capture_output=True, check=False)
    assert done.returncode != 0
