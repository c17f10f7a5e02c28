"""The page as text: what it says for each verdict, that nothing from outside becomes markup, and its size."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.report import samples
from tests.report.hostile import ATTACKS, reports
from tests.trajectory.synthetic import NAMES, Launch, changed, moments
from validator.report.html import Pair, render_comparison, render_report
from validator.report.model import Outcome, PolicyChangeRow, Report
from validator.report.trajectories import Segment, Trajectories
from validator.trajectory.groups import Group, Moment
from validator.trajectory.reader import Trajectory

_ALLOWED = frozenset(
    "html head meta title link style body main header h1 h2 h3 span p b dl dt dd nav ul li a button section div table "
    "caption thead tbody tr th td code pre details summary script figure figcaption svg line polyline circle rect text "
    "path".split()
)


class _Elements(HTMLParser):
    """Every element with its attributes, the text outside of scripts, and the data."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.data = ""
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag in {"script", "style"} else ""
        if tag == "script" and dict(attrs).get("id") == "data":
            self._inside = "data"

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "data":
            self.data += data
        elif not self._inside:
            self.text.append(data)


def _trajectories(folder: Path) -> Trajectories:
    def hostile(rank: int, moment: Moment, group: Group) -> Sequence[str]:
        return ATTACKS[:4] if group is Group.PARAMETERS else NAMES.get(group, ())

    names = Launch(moments=moments(4), names=hostile)
    other = Launch(moments=moments(4), names=hostile,
                   contents={(1, Moment(2), Group.PARAMETERS, ATTACKS[0]): b"other"})  # fmt: skip
    reference = other.seal(folder / "reference")
    segment = Launch(moments=moments(4, 2), names=hostile).seal(folder / "resume-2")
    return Trajectories(
        names.seal(folder / "golden"), None, reference, (names.seal(folder / "repeat"),),
        (Segment(ATTACKS[1], 2, segment),),
    )  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Trajectories:
    return _trajectories(tmp_path_factory.mktemp("hostile"))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(report=reports())
def test_hostile_text_becomes_no_element_no_attribute_no_address(hostile: Trajectories, report: Report) -> None:
    seen = _Elements(render_report(report, hostile, problems=list(ATTACKS)))
    assert {tag for tag, _ in seen.elements} <= _ALLOWED
    assert sum(tag == "script" for tag, _ in seen.elements) == 2
    for tag, attributes in seen.elements:
        assert not [name for name in attributes if name.startswith("on") or name in {"style", "src", "srcdoc"}]
        address = attributes.get("href")
        assert address is None or address.startswith(("#", "https://", "http://", "data:,")), tag
    for character in "\x1b\u202e\u200b\x00\x07":
        assert not any(character in piece for piece in seen.text)
    data = json.loads(seen.data)
    assert set(data) == {"maps", "leaves"}


def test_the_policy_lets_in_this_style_and_this_script_only() -> None:
    page = render_report(samples.passing())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    for tag in ("style", "script"):
        content = re.search(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy[1]
    assert not re.search(r"""(?:src|url\()\s*=?\s*["']?https?:""", page)


@pytest.mark.parametrize("name", samples.SAMPLES)
def test_the_report_alone_makes_a_page(name: str) -> None:
    report = samples.SAMPLES[name]()
    words = " ".join(_Elements(render_report(report)).text)
    assert report.sentence in words
    assert report.next_step in words
    assert "there is no map" in words
    if report.divergence is not None:
        assert report.divergence.sentence in words
    for gate in report.gates:
        assert gate.sentence in words


def test_every_section_is_there_when_there_is_something_to_show(hostile: Trajectories) -> None:
    sections = [attributes["id"] for tag, attributes in _Elements(render_report(samples.changed(), hostile)).elements
                if tag == "section"]  # fmt: skip
    assert sections == [
        "gates", "divergence", "module", "map", "curves", "resume", "environment", "waivers", "records", "text"
    ]  # fmt: skip


def test_the_failing_gates_map_comes_first(hostile: Trajectories) -> None:
    def tabs(report: Report) -> list[str]:
        return [str(attributes["id"]) for _, attributes in _Elements(render_report(report, hostile)).elements
                if attributes.get("role") == "tab"]  # fmt: skip

    assert tabs(samples.passing()) == ["tab-golden", "tab-repeat-1", "tab-resume"]
    assert tabs(samples.resume_broken())[0] == "tab-resume"
    assert tabs(samples.nondeterministic())[0] == "tab-repeat-1"


def test_a_golden_that_travels_with_the_change_has_a_map_of_its_own(tmp_path: Path) -> None:
    old = changed((0, Moment(1), Group.RNG, "cuda")).seal(tmp_path / "old")
    new, reference = Launch().seal(tmp_path / "new"), Launch().seal(tmp_path / "reference")
    page = render_report(samples.passing(), Trajectories(golden=old, new_golden=new, reference=reference))
    maps = json.loads(_Elements(page).data)["maps"]
    assert {name: len(drawn["cells"]) for name, drawn in maps.items()} == {"golden": 1, "new-golden": 0}
    assert (maps["golden"]["title"], maps["new-golden"]["title"]) == ("Against the golden", "Against the new golden")


def test_the_first_divergence_opens_its_own_cell(tmp_path: Path) -> None:
    golden = Launch().seal(tmp_path / "a")
    reference = changed((1, Moment(2), Group.RNG, "cuda")).seal(tmp_path / "b")
    report = samples.changed()
    gate = report.gates[0]
    divergence = gate.divergence
    assert divergence is not None

    def opener(moment: str, group: str) -> dict[str, str | None] | None:
        found = replace(gate, divergence=replace(divergence, moment=moment, group=group))
        page = render_report(replace(report, gates=(found,)), Trajectories(golden=golden, reference=reference))
        return next((each for tag, each in _Elements(page).elements if each.get("class") == "open"), None)

    there = opener("step:2", "rng")
    assert there is not None
    place = (there["data-map"], there["data-group"], there["data-column"])
    assert place == ("golden", str(_group(golden, "rng")), "3")
    assert opener("step:1", "rng") is None  # equal there: the report speaks of other trajectories
    assert opener("no moment", "rng") is None
    assert opener("step:2", "no group") is None


def test_a_comparison_page_names_both(tmp_path: Path) -> None:
    left = Launch().seal(tmp_path / "a")
    right = changed((1, Moment(2), Group.RNG, "cuda")).seal(tmp_path / "b")
    seen = _Elements(render_comparison(Pair(left, right, "before", "after", False, "Different, first at step:2.")))
    words = " ".join(seen.text)
    assert "after against before" in words
    assert json.loads(seen.data)["maps"]["pair"]["cells"].keys() == {"1,3," + str(_group(left, "rng"))}


def test_a_refused_comparison_says_why(tmp_path: Path) -> None:
    left, right = Launch().seal(tmp_path / "a"), Launch(ranks=3).seal(tmp_path / "b")
    page = render_comparison(Pair(left, right, "a", "b", False, "They cannot be compared."))
    assert "hold different ranks (2 and 3 of them)" in page


def _group(trajectory: Trajectory, name: str) -> int:
    """Place of a group among those of the map, which are in the order of ``Group``."""
    return [str(group) for group in Group if group in trajectory.group_names].index(name)


def test_the_gate_behind_the_headline_comes_first(hostile: Trajectories) -> None:
    report = samples.nondeterministic()
    golden = replace(samples.changed().gates[0], outcome=Outcome.FAILS)
    both = replace(report, gates=(golden, report.gates[1], *samples.passing().gates[2:]))
    page = render_report(both, hostile)
    order = re.findall(r"\(leaf; gate (\w+)\)", page)
    assert order == ["repeatability", "golden"]
    assert page.index('id="tab-repeat-1"') < page.index('id="tab-golden"')


def test_a_policy_that_the_change_alters_is_shown_beside_the_base() -> None:
    rows = (PolicyChangeRow("limits.launch_seconds", "300", "900"), PolicyChangeRow("waivers", None, "everything"))
    words = " ".join(_Elements(render_report(replace(samples.passing(), policy_changes=rows, base="0a1b2c"))).text)
    assert "Policy changed here" in words
    assert "Base revision 0a1b2c" in words
    assert "limits.launch_seconds" in words
