"""Addresses of the pages."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from validator.report.model import Verdict
from validator.report.text import printable, seconds_in_words
from validator.service import views
from validator.service.core import Service
from validator.service.pages.chart import Point, overhead_chart
from validator.service.pages.report import report_page
from validator.service.tables import State

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)

_FOLDER = Path(__file__).parent

#: The report page brings its own style and script, and nothing from elsewhere.
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; font-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

#: How a verdict looks: a colour class and a sign, so that colour is never all there is.
_LOOKS = {
    Verdict.PASS: ("good", "✓"), Verdict.REBASELINED: ("good", "↻"), Verdict.NO_BASELINE: ("ask", "?"),
    Verdict.INCONCLUSIVE: ("ask", "?"), Verdict.HOST_CHANGED: ("ask", "!"), Verdict.ERROR: ("ask", "!"),
}  # fmt: skip
_STATE_LOOKS = {State.FAILED: ("bad", "!"), State.CANCELLED: ("off", "–"), State.RUNNING: ("busy", "…")}


def _look(word: str) -> tuple[str, str]:
    if word in set(Verdict):
        return _LOOKS.get(Verdict(word), ("bad", "✗"))
    return _STATE_LOOKS.get(State(word), ("busy", "…")) if word in set(State) else ("off", "–")


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(_FOLDER / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
    lstrip_blocks=True,
)  # fmt: skip
_ENVIRONMENT.filters |= {
    "words": lambda text: printable(str(text)).replace("_", " "),
    "printable": lambda text: printable(str(text)),
    "duration": seconds_in_words,
    "when": lambda time: time.strftime("%Y-%m-%d %H:%M UTC"),
    "look": lambda word: _look(word)[0],
    "sign": lambda word: _look(word)[1],
    "percent": lambda value: "—" if value is None else f"{100 * value:.2f} %",
}


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Here = Annotated[Service, Depends(_service)]


@router.get("/")
def jobs(
    request: Request, service: Here, filters: Annotated[views.Filters, Depends()], page: Annotated[int, Query(ge=1)] = 1
) -> Response:
    """All jobs, narrowed by filters."""
    with service.database.read() as session:
        found = views.list_jobs(session, filters, page)
        values = views.values(session)
    query = {name: value for name, value in filters.model_dump().items() if value}

    def link(number: int) -> str:
        return f"/?{urlencode({**query, 'page': number})}"

    return _page(
        request, "jobs.html", "Checks", found=found, values=values, filters=filters, link=link, is_filtered=bool(query)
    )


@router.get("/jobs/{number}")
def job(request: Request, service: Here, number: int) -> Response:
    """One job, kept up to date while it goes on."""
    with service.database.read() as session:
        found = views.job_detail(session, number)
    if found is None:
        raise HTTPException(404, f"There is no job {number}.")
    return _page(
        request, "job.html", f"{found.pipeline} on {found.commit[:12]}", job=found, is_final=State(found.state).is_final
    )


@router.get("/jobs/{number}/results/{attempt}")
def report(service: Here, number: int, attempt: int) -> Response:
    """The report page of a result."""
    place = service.intake.place(number, attempt)
    if not place.is_dir():
        raise HTTPException(404, f"There is no result of attempt {attempt} of job {number}.")
    return HTMLResponse(report_page(place), headers={"Content-Security-Policy": _REPORT_POLICY})


@router.get("/pipelines")
def pipelines(request: Request, service: Here) -> Response:
    """Every pipeline with its latest result."""
    with service.database.read() as session:
        names = dict.fromkeys([*views.pipelines_of(service.settings), *views.values(session)["pipeline"]])
        found = [(name, next(iter(views.history(session, name, 1)), None)) for name in names]
    return _page(request, "pipelines.html", "Pipelines", found=found)


@router.get("/pipelines/{name}")
def history(request: Request, service: Here, name: str) -> Response:
    """A pipeline's history of verdicts and overhead."""
    with service.database.read() as session:
        rows = views.history(session, name)
    if not rows and name not in views.pipelines_of(service.settings):
        raise HTTPException(404, f"There is no pipeline {printable(name[:100])}.")
    points = [
        Point(
            row.result.overhead, _or(row.result.overhead_low, row.result.overhead),
            _or(row.result.overhead_high, row.result.overhead), f"{row.commit[:12]}, {row.line}",
        )
        for row in reversed(rows)
        if row.result.overhead is not None
    ]  # fmt: skip
    return _page(request, "history.html", name, name=name, rows=rows, chart=Markup(overhead_chart(points)))  # noqa: S704 - escaped there


@router.get("/goldens")
def goldens(request: Request, service: Here) -> Response:
    """Goldens, each with its chain."""
    return _page(request, "goldens.html", "Goldens", goldens=views.goldens(service.settings))


@router.get("/waivers")
def waivers(request: Request, service: Here) -> Response:
    """Waivers with days left."""
    return _page(request, "waivers.html", "Waivers", waivers=views.waivers(service.settings))


@router.get("/changes")
def changes(request: Request, service: Here) -> Response:
    """The latest changes, and what they call for."""
    with service.database.read() as session:
        found = views.changes(session)
    return _page(request, "changes.html", "Changes", changes=found)


@router.get("/deliveries")
def deliveries(request: Request, service: Here) -> Response:
    """The latest webhooks."""
    with service.database.read() as session:
        found = views.deliveries(session)
    return _page(request, "deliveries.html", "Webhooks", deliveries=found)


@router.get("/favicon.ico")
def icon() -> Response:
    """What browsers ask for unasked."""
    return FileResponse(_FOLDER / "static" / "icon.svg", media_type="image/svg+xml")


def message(request: Request, status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """A page that says one sentence."""
    return _page(request, "message.html", "Not possible", status=status, sentence=sentence, headers=headers)


def _page(
    request: Request,
    template: str,
    title: str,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    service: Service = request.app.state.service
    problems = service.problems()
    text = _ENVIRONMENT.get_template(template).render(
        title=printable(title), path=request.url.path, problems=problems, now=datetime.now(UTC), **values
    )
    return HTMLResponse(text, status, headers)


def _or(value: float | None, other: float) -> float:
    return other if value is None else value
