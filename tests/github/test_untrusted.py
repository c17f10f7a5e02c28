"""Results are untrusted: hostile text is shown and does nothing; what is forged, oversized or malformed is refused."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options

from tests.github.hub import Hub
from tests.report import samples
from tests.report.hostile import ATTACKS, poisoned
from validator.github import limits, results
from validator.github.errors import ForgedResultError
from validator.report.model import Report
from validator.report.summary import LIMIT, joined, render_summary

TINY = "validator / tiny"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]


def elements(markdown: str) -> _Elements:
    found = _Elements()
    found.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE))
    return found


HARMLESS = {
    "h2", "h3", "p", "strong", "em", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "br",
    "details", "summary", "a",
}  # fmt: skip


@pytest.mark.parametrize("text", ATTACKS)
@pytest.mark.parametrize("sample", ["changed", "resume_broken"])
def test_hostile_text_is_shown_and_does_nothing(sample: str, text: str) -> None:
    summary = render_summary(poisoned(samples.SAMPLES[sample](), text), "https://github.example/run/1")
    found = elements(summary)
    assert found.found <= HARMLESS
    assert set(found.links) <= {"https://github.example/run/1"}
    outside_of_blocks = re.sub(r"(?ms)^(```+).*?^\1$", "", summary)
    assert not re.search(r"(?<![\w&;])@\w", outside_of_blocks)
    assert all(each == "\n" or each.isprintable() for each in summary)


@pytest.mark.parametrize("text", [ATTACKS[0], ATTACKS[3], ATTACKS[8]])
def test_hostile_text_in_a_published_result_is_harmless(hub: Hub, text: str) -> None:
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    hub.pull()
    made = replace(poisoned(samples.changed(), text), pipeline="tiny", stamps=(), started="2026-11-29T12:00:00+00:00")
    ran = hub.publish(str(hub.report(made)))
    assert ran.code == 0, ran.err
    (comment,) = hub.comments
    for shown in (comment, *(run["output"]["summary"] for run in hub.runs().values())):
        assert elements(shown.replace("<!-- megatron-change-validator -->", "")).found <= HARMLESS
        assert "@octocat" not in shown
    for run in hub.runs().values():
        assert run["output"]["title"].isprintable()


def test_a_long_summary_is_cut_between_sections() -> None:
    long = "weight." * 10_000
    report = poisoned(samples.changed(), long)
    summary = render_summary(report, "https://github.example/run/1")
    assert 1000 < len(summary) <= LIMIT
    assert "left out here; the full report has all" in summary
    assert "**Full report:** <https://github.example/run/1>" in summary
    assert elements(summary).found <= HARMLESS


def test_a_summary_of_seventy_thousand_characters_is_taken(hub: Hub) -> None:
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    hub.pull()
    rows = tuple(replace(samples.changed().environment_difference[0], name="N" * 1900) for _ in range(40))
    made = replace(samples.changed(), environment_difference=rows, next_step="x" * 70_000)
    assert hub.publish(str(hub.report(made))).code == 0
    summary = hub.runs()[TINY]["output"]["summary"]
    assert len(summary) <= LIMIT
    assert "left out here" in summary


def test_cutting_keeps_whole_sections() -> None:
    assert joined(["a" * 10, "b" * 400, "c" * 10], 300) == (
        "aaaaaaaaaa\n\ncccccccccc\n\n*1 longer section left out here; the full report has all.*\n"
    )


# Claims that the trajectories do not bear out


def passing(hub: Hub, *words: str) -> Path:
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    hub.pull()
    assert hub.check(*words).verdict == "pass"
    return hub.results / "tiny"


def claim(folder: Path, **values: object) -> None:
    file = folder / "report.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


def test_a_claim_of_success_without_trajectories_is_an_error(hub: Hub) -> None:
    folder = passing(hub)
    for file in folder.rglob("rank-*"):
        file.unlink()
    hub.publish(str(folder))
    run = hub.runs()[TINY]
    assert run["conclusion"] == "failure"
    assert "its trajectories cannot be judged" in run["output"]["summary"]


def test_a_claim_of_success_for_other_bits_is_an_error(hub: Hub) -> None:
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    hub.pull()
    hub.project.double.misbehave(every={"diverge": {"step": 4}})
    assert hub.check("--keep-going").verdict == "changed"
    folder = hub.results / "tiny"
    good = json.loads((folder / "report.json").read_text())
    gates = [gate | {"outcome": "holds", "divergence": None, "required": False} for gate in good["gates"]]
    claim(folder, verdict="pass", exit_code=0, sentence="Every required gate holds.", gates=gates, divergence=None)
    hub.publish(str(folder))
    run = hub.runs()[TINY]
    assert run["conclusion"] == "failure"
    assert "claims pass; its trajectories say changed" in run["output"]["summary"]


@pytest.mark.parametrize("gone", ["resume", "recorder"])
def test_a_gate_that_a_result_leaves_out_is_missed(hub: Hub, gone: str) -> None:
    folder = passing(hub)
    report = json.loads((folder / "report.json").read_text())
    gates = [gate for gate in report["gates"] if gate["name"] != gone]
    claim(folder, gates=gates)
    if gone == "resume":
        for file in folder.glob("launches/resume-2/trajectory/*"):
            file.unlink()
    hub.publish(str(folder))
    assert hub.runs()[TINY]["conclusion"] == "failure"


def test_an_overhead_that_holds_without_a_measurement_is_an_error(hub: Hub) -> None:
    hub.repo.git("checkout", "-q", "main")
    hub.project.change("resume: required}", "resume: required, overhead: required}")
    hub.repo.commit("the overhead gates")
    hub.push("main")
    hub.repo.git("checkout", "-q", "-B", "change")
    folder = passing(hub, "--overhead", "off")
    report = json.loads((folder / "report.json").read_text())
    held = {**report["gates"][0], "name": "overhead", "sentence": "Below its budget.", "launches": 8}
    others = [gate for gate in report["gates"] if gate["name"] != "overhead"]
    claim(folder, gates=[*others, held], verdict="pass", exit_code=0)
    hub.publish(str(folder))
    run = hub.runs()[TINY]
    assert run["conclusion"] == "failure"
    assert "claims that the overhead gate holds, and brings no measurement" in run["output"]["summary"]


def test_digests_and_indices_of_a_result_are_not_taken_on_trust(hub: Hub) -> None:
    folder = passing(hub)
    assert not list(folder.rglob("tree.bin"))  # not even handed over
    (leaves,) = folder.glob("launches/reference/trajectory/rank-00001.leaves")
    content = bytearray(leaves.read_bytes())
    content[40] ^= 1
    leaves.write_bytes(content)
    hub.publish(str(folder))
    run = hub.runs()[TINY]
    assert run["conclusion"] == "failure"
    assert "edited" in run["output"]["summary"]


def test_two_results_of_one_pipeline_count_as_none(hub: Hub) -> None:
    folder = passing(hub)
    hub.publish(str(folder), str(folder))
    assert "2 results came of" in hub.runs()[TINY]["output"]["summary"]


def test_a_result_of_another_pipeline_is_not_used(hub: Hub) -> None:
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    hub.pull()
    hub.publish(str(hub.report("pass", pipeline="other")))
    summary = hub.runs()["validator"]["output"]["summary"]
    assert "which is not called for" in summary
    assert hub.runs()[TINY]["conclusion"] == "failure"


# Artifacts


def zipped(**entries: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return content.getvalue()


def linked(name: str, target: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        entry = zipfile.ZipInfo(name)
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, target)
        archive.writestr("report.json", "{}")
    return content.getvalue()


def bomb() -> bytes:
    return zipped(**{"report.json": b"{}", "launches/a/log.txt": bytes(3 << 20)})


FORGED = {
    "no zip": (b"PK\x03\x04 nothing", "cannot be unpacked"),
    "a link": (linked("launches", "/etc"), "a link or a special file"),
    "a way out": (zipped(**{"../../escaped": b"x"}), "stay within its folder"),
    "an absolute name": (zipped(**{"/tmp/escaped": b"x"}), "stay within its folder"),
    "a backslash": (zipped(**{"a\\..\\b": b"x"}), "stay within its folder"),
    "a control character": (zipped(**{"a\x1b[2Jb": b"x"}), "stay within its folder"),
    "a bomb": (bomb(), "unpacks to more than"),
    "no report": (zipped(**{"launches/x": b"x"}), "holds no report.json"),
    "no JSON": (zipped(**{"report.json": b"{"}), "is no readable report"),
    "deep JSON": (zipped(**{"report.json": b"[" * 200_000}), "is no readable report"),
    "another schema": (zipped(**{"report.json": b'{"schema": "evil"}'}), "does not fit the report"),
    "a truncated zip": (zipped(**{"report.json": os.urandom(5000)})[:-600], "cannot be unpacked"),
}


@pytest.mark.parametrize("forged", FORGED)
def test_forged_artifacts_are_refused_with_a_sentence(
    forged: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(results, "MOST_BYTES", 2 << 20)
    content, sentence = FORGED[forged]
    (tmp_path / "artifact.zip").write_bytes(content)
    (tmp_path / "a" / "scratch").mkdir(parents=True)
    with pytest.raises(ForgedResultError, match=re.escape(sentence)):
        results.read_result(tmp_path / "artifact.zip", tmp_path / "a" / "scratch")
    assert not list(tmp_path.rglob("escaped"))
    assert not Path("/tmp/escaped").exists()


def test_a_forged_artifact_is_a_failure_that_says_why(hub: Hub, tmp_path: Path) -> None:
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    hub.pull()
    hub.attach(FORGED["a link"][0])
    ran = hub.publish("--download", str(tmp_path / "kept"))
    assert ran.code == 0, ran.err
    run = hub.runs()[TINY]
    assert run["conclusion"] == "failure"
    assert "a link or a special file" in run["output"]["summary"]


def test_a_duplicated_name_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("report.json", "{}")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("report.json", "[]")
    with pytest.raises(ForgedResultError, match="twice"):
        results.unpack(tmp_path / "a.zip", tmp_path / "out")


def test_an_artifact_that_is_too_large_is_not_loaded(hub: Hub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limits, "MOST_BYTES", 1000)
    hub.repo.write("constraints.txt", "torch==2.14.2\n")
    hub.repo.commit("a bump")
    hub.pull()
    hub.attach(os.urandom(5000))
    ran = hub.publish("--download", str(tmp_path / "kept"))
    assert ran.code == 0, ran.err
    assert "has more than the 1000 bytes" in hub.runs()["validator"]["output"]["summary"]


def test_links_and_special_files_of_a_folder_are_refused_and_never_packed(hub: Hub, tmp_path: Path) -> None:
    folder = passing(hub)
    out = hub.project.folder.parent / "out"
    (out / "launches" / "reference" / "trajectory" / "rank-00009.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(out / "launches" / "reference" / "trajectory" / "rank-00008.jsonl")
    packed = hub.project.run("github", "pack", str(out), str(tmp_path / "packed"))
    assert packed.code == 0
    assert not list((tmp_path / "packed").rglob("rank-0000[89]*"))
    (folder / "launches" / "extra").symlink_to("/etc")
    hub.publish(str(folder))
    assert "a link or a special file" in hub.runs()[TINY]["output"]["summary"]


def test_any_claimed_report_can_be_rendered() -> None:
    for make in samples.SAMPLES.values():
        report: Report = make()
        assert len(render_summary(report)) < LIMIT
