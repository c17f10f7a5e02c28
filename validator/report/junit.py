"""The report as JUnit XML: one test case a gate, red exactly where the verdict's exit status is not 0."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from validator.report.harmless import harmless
from validator.report.model import GateReport, Outcome, Report
from validator.report.words import (
    code_in_words,
    gate_in_words,
    localisation_in_words,
    module_in_words,
    place_in_words,
)


def render_junit(report: Report) -> str:
    """The document as text; its elements and attributes are those of ``junit-10.xsd``, which Jenkins validates with."""
    clean = harmless(report)
    suite = ET.Element("testsuite", name=_class_name(clean), time=_seconds(clean.seconds))
    if clean.started:
        suite.set("timestamp", clean.started)
    properties = ET.SubElement(suite, "properties")
    for name, value in (("verdict", clean.verdict.value), ("hardware_class", clean.hardware_class), ("out", clean.out)):
        ET.SubElement(properties, "property", name=name, value=value)
    for gate in clean.gates:
        _case(suite, clean, gate)
    if clean.verdict.exit_code != 0 and not _is_red(suite):
        # The verdict did not come from a gate: a failed preflight, for one.
        case = ET.SubElement(suite, "testcase", name="verdict", classname=_class_name(clean), time="0.000")
        _result(case, "error", clean.verdict.value, clean.sentence, clean.next_step)
    _count(suite)
    suites = ET.Element("testsuites", name="validator check", time=_seconds(clean.seconds))
    suites.extend([suite])
    for counter in ("tests", "failures", "errors"):
        suites.set(counter, suite.get(counter, "0"))
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n")
    )


def _case(suite: ET.Element, report: Report, gate: GateReport) -> None:
    case = ET.SubElement(suite, "testcase", name=gate.name, classname=_class_name(report), time=_seconds(gate.seconds))
    sentence = gate_in_words(gate)
    if gate.outcome is Outcome.NOT_RUN or (gate.outcome is not Outcome.HOLDS and not gate.required):
        ET.SubElement(case, "skipped", message=f"{gate.outcome.value}: {sentence}")
    elif gate.outcome is Outcome.FAILS:
        _result(case, "failure", "fails", sentence, _detail(gate))
    elif gate.outcome is not Outcome.HOLDS:
        _result(case, "error", gate.outcome.value, sentence, _detail(gate))
    lines = [sentence, *gate.notes, *(f"waived: {finding.leaf}: {finding.reason}" for finding in gate.waived)]
    ET.SubElement(case, "system-out").text = "\n".join(lines)


def _detail(gate: GateReport) -> str:
    divergence = gate.divergence
    if divergence is None:
        return "\n".join(gate.notes)
    lines = [place_in_words(divergence), divergence.sentence]
    metric = divergence.metric
    if metric is None:
        lines += [f"expected {divergence.expected}", f"observed {divergence.observed}"]
    else:
        lines += [f"expected {metric.expected} bits {metric.expected_bits}"]
        lines += [f"observed {metric.observed} bits {metric.observed_bits}"]
    if gate.localisation is not None:
        found = gate.localisation
        lines += [text for text in (module_in_words(found), code_in_words(found), localisation_in_words(found)) if text]
    return "\n".join(lines)


def _result(case: ET.Element, tag: str, kind: str, message: str, detail: str) -> None:
    ET.SubElement(case, tag, type=kind, message=message).text = detail


def _count(suite: ET.Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for counter, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(counter, str(len(suite.findall(f"testcase/{tag}"))))


def _is_red(suite: ET.Element) -> bool:
    return suite.find("testcase/failure") is not None or suite.find("testcase/error") is not None


def _class_name(report: Report) -> str:
    return f"validator.{report.pipeline}" if report.pipeline else "validator"


def _seconds(seconds: float) -> str:
    return f"{max(0.0, seconds):.3f}"
