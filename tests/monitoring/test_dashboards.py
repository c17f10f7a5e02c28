"""Dashboards and alert rules as files: current, valid by Grafana's own schema, and about metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.monitoring.boards import DASHBOARDS, ROOT, RULE_TESTS, expressions, generated, panels, rules, schema
from validator.metrics.families import FAMILIES, KEY


def test_the_files_are_what_the_code_makes() -> None:
    assert {file.name: file.read_text() for file in DASHBOARDS} == generated()


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_a_dashboard_fits_grafanas_published_schema(file: Path) -> None:
    jsonschema.Draft7Validator(schema("dashboard")).validate(json.loads(file.read_text()))


def test_the_schema_refuses_what_is_no_dashboard() -> None:
    broken = {**json.loads(DASHBOARDS[0].read_text()), "panels": [{"type": 3}]}
    assert not jsonschema.Draft7Validator(schema("dashboard")).is_valid(broken)


def test_every_panel_fits_the_schema_of_its_kind() -> None:
    for board, panel in panels():
        kind = "statetimeline" if panel["type"] == "state-timeline" else panel["type"]
        document = schema(kind)
        definitions = document["definitions"]
        for part, definition in (("options", "Options"), ("custom", "FieldConfig")):
            value = (
                panel.get("options")
                if part == "options"
                else panel.get("fieldConfig", {}).get("defaults", {}).get(part)
            )
            if value is not None and definition in definitions:
                fitted = {**document, "$ref": f"#/definitions/{definition}"}
                jsonschema.Draft7Validator(fitted).validate(value)
        query = {**schema("prometheus"), "$ref": "#/definitions/dataquery"}
        for target in panel["targets"]:
            assert jsonschema.Draft7Validator(query).is_valid(target), board


def used(expression: str) -> set[str]:
    return set(re.findall(r"\bvalidator_\w+", expression))


def test_every_query_is_about_metrics_that_are_exported() -> None:
    for place, expression in [*expressions(), *((rule["alert"], rule["expr"]) for rule in rules())]:
        assert used(expression), place
        assert used(expression) <= FAMILIES.keys(), place
        for labels in re.findall(r"by \(([^)]*)\)", expression):
            known = {*KEY, *(label for name in used(expression) for label in FAMILIES[name].labels)}
            assert {label.strip() for label in labels.split(",")} <= known, place


def test_every_exported_metric_is_on_a_dashboard() -> None:
    assert {name for _, expression in expressions() for name in used(expression)} == FAMILIES.keys()


def test_every_alert_has_a_test_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    cases = [case for test in yaml.safe_load(RULE_TESTS.read_text())["tests"] for case in test["alert_rule_test"]]
    fires = {case["alertname"] for case in cases if case["exp_alerts"]}
    named = {rule["alert"] for rule in rules()}
    assert fires == named
    silent = {case["alertname"] for case in cases if not case["exp_alerts"]} | {"ValidatorWaiverAboutToExpire"}
    assert silent == named  # the waiver's test has a second waiver that must not fire


def test_the_compose_file_mounts_what_is_there_and_listens_on_this_machine_only() -> None:
    services = yaml.safe_load((ROOT / "compose.monitoring.yaml").read_text())["services"]
    assert set(services) == {"pushgateway", "alertmanager", "prometheus", "grafana"}
    for name, service in services.items():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert not source.startswith(".") or (ROOT / source).exists(), volume
