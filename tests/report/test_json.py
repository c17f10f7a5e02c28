from __future__ import annotations

import json

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from tests.report.hostile import ATTACKS, poisoned
from tests.report.samples import SAMPLES, changed, no_baseline, passing, resume_broken
from validator.report.json import document, plain, render_json, report_schema
from validator.report.model import Report, Verdict

SCHEMA = report_schema()


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_is_valid(name: str) -> None:
    Draft202012Validator(SCHEMA).validate(json.loads(render_json(SAMPLES[name]())))


def test_an_unknown_key_or_verdict_is_not_valid() -> None:
    sound = Draft202012Validator(SCHEMA)
    assert not sound.is_valid({**document(passing()), "verdikt": "pass"})
    assert not sound.is_valid({**document(passing()), "verdict": "ok"})


def test_the_schema_knows_all_verdicts() -> None:
    definitions = SCHEMA["$defs"]
    assert isinstance(definitions, dict)
    assert definitions["verdict"] == {"enum": [verdict.value for verdict in Verdict]}


def test_what_a_program_looks_for() -> None:
    found = json.loads(render_json(changed()))
    assert (found["schema"], found["version"]) == ("validator/report", 1)
    assert (found["verdict"], found["exit_code"]) == ("changed", 1)
    assert found["divergence"]["moment"] == "step:1"
    assert found["divergence"]["metric"]["ulps"] == 1
    assert found["divergence"] == found["gates"][0]["divergence"]
    assert found["environment_difference"][0]["name"] == "ATEN_CPU_CAPABILITY"
    assert found["waivers"]["seen"][0]["leaf"] == "rng/expert-parallel-rng"
    assert json.loads(render_json(no_baseline()))["golden"] is None


def test_the_divergence_is_that_of_the_failing_gate() -> None:
    assert json.loads(render_json(resume_broken()))["divergence"]["group"] == "optimizer"
    assert json.loads(render_json(passing()))["divergence"] is None


def test_floats_that_json_lacks_become_strings() -> None:
    assert plain({"a": (float("inf"), float("nan"), -0.0, 1)}) == {"a": ["inf", "nan", -0.0, 1]}


@pytest.mark.parametrize("text", ATTACKS)
def test_hostile_text_survives_exactly_and_in_ascii(text: str) -> None:
    report: Report = poisoned(passing(), text)
    rendered = render_json(report)
    assert rendered.isascii()
    assert all(character == "\n" or character.isprintable() for character in rendered)
    assert json.loads(rendered)["sentence"] == text


@given(...)
def test_any_text_survives(text: str) -> None:
    assert json.loads(render_json(poisoned(changed(), text)))["pipeline"] == text
