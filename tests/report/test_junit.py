from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given

from tests.report.hostile import reports
from tests.report.samples import SAMPLES, changed, passing
from validator.report.junit import render_junit
from validator.report.model import GateReport, Outcome, Report, Verdict

#: Elements and attributes of junit-10.xsd, as far as they are used.
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "property": set(),
    "testcase": {"skipped", "error", "failure", "system-out"},
    "skipped": set(),
    "error": set(),
    "failure": set(),
    "system-out": set(),
}
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "time", "classname"},
    "skipped": {"type", "message"},
    "error": {"type", "message"},
    "failure": {"type", "message"},
    "system-out": set(),
}
REQUIRED = {"testsuite": {"name", "tests", "failures", "errors"}, "testcase": {"name"}, "property": {"name", "value"}}


def parsed(report: Report) -> ET.Element:
    return ET.fromstring(render_junit(report))  # noqa: S314


def conforms(element: ET.Element) -> bool:
    known = (
        element.attrib.keys() <= ATTRIBUTES[element.tag] and REQUIRED.get(element.tag, set()) <= element.attrib.keys()
    )
    return known and all(child.tag in CHILDREN[element.tag] and conforms(child) for child in element)


@pytest.mark.parametrize("name", SAMPLES)
def test_structure_and_counts(name: str) -> None:
    root = parsed(SAMPLES[name]())
    assert root.tag == "testsuites"
    assert conforms(root)
    suite = root[0]
    assert suite.get("tests") == str(len(root.findall(".//testcase")))
    assert suite.get("failures") == str(len(root.findall(".//failure")))
    assert suite.get("errors") == str(len(root.findall(".//error")))


@pytest.mark.parametrize("name", SAMPLES)
def test_red_exactly_where_the_command_fails(name: str) -> None:
    report = SAMPLES[name]()
    root = parsed(report)
    red = root.findall(".//failure") + root.findall(".//error")
    assert bool(red) == (report.verdict.exit_code != 0)


def test_a_verdict_without_a_gate_is_red_too() -> None:
    root = parsed(replace(passing(), verdict=Verdict.ERROR, gates=()))
    assert [case.get("name") for case in root.findall(".//testcase")] == ["verdict"]
    assert root.find(".//error") is not None


def test_an_advisory_gate_that_fails_is_skipped_with_its_reason() -> None:
    advisory = GateReport("overhead", Outcome.FAILS, False, "12 % is above the budget of 10 %")
    skipped = parsed(replace(passing(), gates=(advisory,))).find(".//skipped")
    assert skipped is not None
    assert skipped.get("message") == "fails: 12 % is above the budget of 10 % (advisory)"


def test_the_failure_holds_both_values_and_bits() -> None:
    failure = parsed(changed()).find(".//failure")
    assert failure is not None
    assert "expected 6.238412380218506 bits 40c7a112" in (failure.text or "")
    assert "observed 6.238412857055664 bits 40c7a113" in (failure.text or "")


@given(reports())
def test_well_formed_whatever_the_report_holds(report: Report) -> None:
    assert conforms(parsed(report))
