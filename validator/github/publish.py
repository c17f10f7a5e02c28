"""Publishing: results in, check runs and one comment out. Nothing of the change is ever run or checked out here."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from validator.check.anew import Grounds
from validator.check.base import read_base_of
from validator.errors import UsageError, ValidatorError
from validator.github.annotations import annotations_of
from validator.github.check_runs import CheckRun
from validator.github.comment import publish_comment
from validator.github.conclusion import ACTION_REQUIRED, FAILURE, SUCCESS, conclusion_of, title_of, worst
from validator.github.event import MERGE_GROUP, Change
from validator.github.plan import CALLED, Plan, make_plan
from validator.github.repository import Repository
from validator.github.results import Result, read_result
from validator.golden.history import Repository as History
from validator.overhead.anew import judge
from validator.report.markup import code, prose, table
from validator.report.model import Report
from validator.report.summary import joined, render_summary
from validator.report.text import counted, printable, shortened

#: Name of the aggregate check, which a ruleset requires.
AGGREGATE = "validator"

_MOST_FILE = 1 << 20

#: Events about a commit that is not merged; empty where a person publishes by hand.
_OF_CHANGES = ("pull_request", MERGE_GROUP, "")


@dataclass(frozen=True, slots=True)
class Judged:
    """One pipeline: its report, judged anew, or the sentence that says why there is none."""

    pipeline: str
    report: Report | None
    problem: str = ""
    annotations: tuple[dict[str, object], ...] = ()

    @property
    def conclusion(self) -> str:
        return FAILURE if self.report is None else conclusion_of(self.report)

    @property
    def title(self) -> str:
        return "Error: there is no result" if self.report is None else title_of(self.report)


def publish(
    root: Path,
    repository: Repository,
    change: Change,
    results: Sequence[Path],
    today: date,
    refused: Sequence[str] = (),
) -> list[str]:
    """Bring the change's check runs and comment up to date; returns lines that say what was done.

    ``refused`` are sentences about results that were not even taken.

    Raises ``GitHubError`` where GitHub cannot be told, which changes no verdict; ``UsageError`` where a commit is not
    in the clone at ``root``.
    """
    if change.key:
        return [f"Run {change.run} belongs to the service's job {change.key}, which publishes it."]
    if change.event not in _OF_CHANGES and not _is_merged(root, change):
        return [f"Run {change.run} is of {change.head[:12]}, which no {change.event} on the default branch is about."]
    try:
        plan = make_plan(root, change.base, change.head, chosen=_chosen(root, change, results))
    except UsageError as error:
        _aggregate(change, FAILURE, "Error: it could not be planned", prose(str(error))).publish(repository)
        raise
    if change.state != "completed":
        return _announce(repository, change, plan)
    judged, strays = judge_results(root, change, plan, results, today, refused)
    for each in judged:
        _of_pipeline(change, each).publish(repository)
    conclusion = worst([*(each.conclusion for each in judged), *([ACTION_REQUIRED] if plan.findings else [])])
    title = aggregate_title(plan, judged)
    if conclusion == SUCCESS and change.conclusion not in {"", SUCCESS}:
        conclusion, title = FAILURE, f"Error: the run ended as {shortened(printable(change.conclusion), 40)}"
    summary = aggregate_summary(change, plan, judged, strays)
    _aggregate(change, conclusion, title, summary).publish(repository)
    lines = [f"{each.pipeline}: {each.conclusion}, {each.title}" for each in judged]
    lines.append(f"{AGGREGATE}: {conclusion}, {title}")
    if change.pull is not None:
        reports = [each.report for each in judged if each.report is not None and each.conclusion != SUCCESS]
        details = [render_summary(report, change.url, 20_000) for report in reports]
        done = publish_comment(
            repository, change.pull, joined([summary, *details]), wrong=conclusion != SUCCESS
        )  # fmt: skip
        lines.append(f"comment on #{change.pull}: {done}")
    return lines + [f"not used: {stray}" for stray in strays]


def _is_merged(root: Path, change: Change) -> bool:
    return History.around(root).merge_base(change.base, change.head) == change.head


def _chosen(root: Path, change: Change, results: Sequence[Path]) -> str:
    """Of a commit that is merged already, a new image or a person asked for a check: what came is what was asked for.
    Of any other commit the plan decides, so that nobody chooses what a pull request is judged by.
    """
    if change.event in _OF_CHANGES:
        return CALLED
    with tempfile.TemporaryDirectory() as temporary, suppress(UsageError):
        names = sorted({report.pipeline for place in results if (report := _claim(place, Path(temporary)))})
        make_plan(root, change.base, change.head, chosen=",".join(names))
        return ",".join(names)
    return CALLED


def _claim(place: Path, scratch: Path) -> Report | None:
    try:
        return read_result(place, scratch).report
    except ValidatorError:
        return None  # said when it is judged


def judge_results(
    root: Path, change: Change, plan: Plan, results: Sequence[Path], today: date, refused: Sequence[str] = ()
) -> tuple[list[Judged], list[str]]:
    """Every pipeline that is called for with its result, and sentences about results that are not used."""
    found: dict[str, list[Result]] = {each.pipeline: [] for each in plan.called}
    strays = list(refused)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        (scratch / "unpacked").mkdir()
        for place in results:
            try:
                result = read_result(place, scratch / "unpacked")
            except ValidatorError as error:
                strays.append(str(error).replace(str(scratch), ""))
                continue
            if result.report.pipeline in found:
                found[result.report.pipeline].append(result)
            else:
                strays.append(f"A result of {result.report.pipeline[:80]!r}, which is not called for.")
        judged = [_judge(root, change, name, own, strays, scratch / name, today) for name, own in found.items()]
    return judged, strays


def _judge(
    root: Path, change: Change, name: str, results: list[Result], strays: list[str], scratch: Path, today: date
) -> Judged:
    if not results:
        why = f" The run ended as {change.conclusion}." if change.conclusion not in {"", SUCCESS} else ""
        said = f" Unusable: {strays[0]}" if strays else ""
        return Judged(name, None, f"No result came of {name}: its launch failed, was cancelled or skipped.{why}{said}")
    if len(results) > 1:
        return Judged(name, None, f"{len(results)} results came of {name}; one is expected, so none counts.")
    history = History.around(root)
    try:
        pipeline, base, head = read_base_of(name, root, change.base, scratch, change.head)
        report = judge(results[0].report, results[0].trajectory, Grounds(pipeline, base, head, today))
    except ValidatorError as error:
        return Judged(name, None, f"The result of {name} cannot be judged: {error}".replace(str(scratch), ""))
    changed = history.changed(history.merge_base(change.base, change.head), change.head)
    files = {path: history.read(change.head, history.top / path) or "" for path in sorted(changed)[:200]}
    small = {path: text for path, text in files.items() if len(text) <= _MOST_FILE}
    return Judged(name, report, annotations=tuple(annotations_of(report, small, f"pipelines/{name}.yaml")))


def aggregate_title(plan: Plan, judged: Sequence[Judged]) -> str:
    """One line: what is wrong, else that nothing is."""
    if not judged:
        return "Findings, and nothing to launch" if plan.findings else "Nothing is called for"
    wrong = [each.pipeline for each in judged if each.conclusion != SUCCESS]
    if wrong:
        return shortened(f"{len(wrong)} of {counted(len(judged), 'pipeline')} not green: {', '.join(wrong)}", 200)
    return "Findings" if plan.findings else f"{counted(len(judged), 'pipeline')} green"


def aggregate_summary(change: Change, plan: Plan, judged: Sequence[Judged], strays: Sequence[str]) -> str:
    """Markdown: a table of pipelines, findings, what was not used."""
    marks = {SUCCESS: "✅", FAILURE: "❌"}
    rows = [
        (
            marks.get(each.conclusion, "⚠️"),
            code(each.pipeline),
            code(each.report.verdict.value) if each.report else "no result",
            prose(shortened(each.report.sentence if each.report else each.problem, 400)),
        )
        for each in judged
    ]
    sections = [prose(plan.sentence)]
    if rows:
        sections.append(table(("", "pipeline", "verdict", "what was found"), rows))
    if plan.findings:
        sections.append(
            "**Findings**\n\n" + "\n".join(f"- {prose(shortened(each, 400))}" for each in plan.findings[:40])
        )
    if strays:
        sections.append("**Not used**\n\n" + "\n".join(f"- {prose(shortened(each, 400))}" for each in strays[:10]))
    if change.url:
        sections.append(f"**Full reports:** <{change.url}>")
    return joined(sections)


def _announce(repository: Repository, change: Change, plan: Plan) -> list[str]:
    words = "Waiting for a runner or an approval." if change.state == "queued" else "Launches are running."
    for each in plan.called:
        CheckRun(
            name=f"{AGGREGATE} / {each.pipeline}", commit=change.head, identity=_identity(change, each.pipeline),
            state=change.state, title=words, summary=prose(each.reason), url=change.url,
        ).publish(repository)  # fmt: skip
    _aggregate(change, "", words, prose(plan.sentence)).publish(repository)
    return [f"{AGGREGATE} and {counted(len(plan.called), 'pipeline')}: {change.state}"]


def _of_pipeline(change: Change, judged: Judged) -> CheckRun:
    text = prose(judged.problem) if judged.report is None else render_summary(judged.report, change.url)
    return CheckRun(
        name=f"{AGGREGATE} / {judged.pipeline}", commit=change.head, identity=_identity(change, judged.pipeline),
        state="completed", conclusion=judged.conclusion, title=judged.title, summary=text,
        annotations=judged.annotations, url=change.url,
    )  # fmt: skip


def _aggregate(change: Change, conclusion: str, title: str, summary: str) -> CheckRun:
    return CheckRun(
        name=AGGREGATE, commit=change.head, identity=_identity(change, ""),
        state="completed" if conclusion else change.state, conclusion=conclusion, title=title, summary=summary,
        url=change.url,
    )  # fmt: skip


def _identity(change: Change, pipeline: str) -> str:
    """Another attempt of the same run has check runs of its own."""
    return f"validator:{change.head}:{change.run}:{change.attempt}:{pipeline}"
