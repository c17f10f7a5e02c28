"""The dashboards and rules of the project, as tests read them."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2] / "containers"
DASHBOARDS = sorted((ROOT / "grafana" / "dashboards").glob("*.json"))
RULES = ROOT / "prometheus" / "rules" / "validator.yml"
RULE_TESTS = ROOT / "prometheus" / "tests" / "validator_test.yml"
SCHEMAS = Path(__file__).parent / "schema"


def schema(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((SCHEMAS / f"{name}.jsonschema.json").read_text())
    return content


def generated() -> dict[str, str]:
    """What the dashboards' code makes now."""
    spec = importlib.util.spec_from_file_location("dashboards", ROOT / "grafana" / "dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    import sys

    module = importlib.util.module_from_spec(spec)
    sys.modules["dashboards"] = module
    try:
        spec.loader.exec_module(module)
        documents: dict[str, str] = module.documents()
    finally:
        del sys.modules["dashboards"]
    return documents


def panels() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every panel with its dashboard's name."""
    for file in DASHBOARDS:
        for panel in json.loads(file.read_text())["panels"]:
            yield file.stem, panel


def expressions() -> Iterator[tuple[str, str]]:
    """Every query of the dashboards, with the words that name its place; any pipeline and hardware class is chosen."""
    for board, panel in panels():
        for target in panel["targets"]:
            chosen = target["expr"].replace("$pipeline", ".*").replace("$hardware_class", ".*")
            yield f"{board}: {panel['title']} ({target['refId']})", chosen


def rules() -> list[dict[str, Any]]:
    content = yaml.safe_load(RULES.read_text())
    return [rule for group in content["groups"] for rule in group["rules"]]
