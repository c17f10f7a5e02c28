"""The JSON API: reading without a token, pushing with one."""

from __future__ import annotations

import errno
import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.requests import ClientDisconnect

from validator.report.json import document
from validator.service import views
from validator.service.core import Service
from validator.service.database import StorageError
from validator.service.results.pack import TooLargeError

router = APIRouter(prefix="/api/v1", tags=["reading"])
push_router = APIRouter(prefix="/api/v1", tags=["pushing"])

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_HEX = re.compile(r"[0-9a-f]{64}")


class Problem(BaseModel):
    """Why it was not done."""

    detail: str


class Progress(BaseModel):
    """How a check stands."""

    line: str = Field(max_length=500)


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Here = Annotated[Service, Depends(_service)]
_UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"model": Problem}}
_REFUSED: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 409, 413, 422, 503, 507)
}


@router.get("/jobs", summary="Jobs, newest first")
def jobs(
    service: Here, filters: Annotated[views.Filters, Depends()], page: Annotated[int, Query(ge=1)] = 1
) -> views.JobList:
    with service.database.read() as session:
        return views.list_jobs(session, filters, page)


@router.get("/jobs/{number}", summary="One job", responses=_UNKNOWN)
def job(service: Here, number: int) -> views.JobDetail:
    with service.database.read() as session:
        found = views.job_detail(session, number)
    if found is None:
        raise HTTPException(404, f"There is no job {number}.")
    return found


@router.get("/jobs/{number}/results/{attempt}", summary="The report of a result", responses=_UNKNOWN)
def report(service: Here, number: int, attempt: int) -> dict[str, Any]:
    found = service.intake.document(number, attempt)
    if found is None:
        raise HTTPException(404, f"There is no result of attempt {attempt} of job {number}.")
    return dict(document(found))


@router.get("/pipelines", summary="Pipelines that an event calls for")
def pipelines(service: Here) -> list[str]:
    return list(views.pipelines_of(service.settings))


@router.get("/pipelines/{name}/history", summary="Verdicts and overhead of a pipeline, newest first")
def history(service: Here, name: str) -> list[views.HistoryRow]:
    with service.database.read() as session:
        return views.history(session, name)


@router.get("/goldens", summary="Goldens of the base revision, with their chain")
def goldens(service: Here) -> list[views.GoldenView]:
    return views.goldens(service.settings)


@router.get("/waivers", summary="Waivers of the base revision, with days left")
def waivers(service: Here) -> list[views.WaiverView]:
    return views.waivers(service.settings)


@router.get("/changes", summary="The latest changes, and what they call for")
def changes(service: Here) -> list[views.ChangeView]:
    with service.database.read() as session:
        return views.changes(session)


@router.get("/deliveries", summary="The latest webhooks, and what became of them")
def deliveries(service: Here) -> list[views.DeliveryView]:
    with service.database.read() as session:
        return views.deliveries(session)


@push_router.put(
    "/attempts/{attempt}/result", status_code=201, responses=_REFUSED, summary="Push the result of an attempt"
)
async def push(request: Request, service: Here, attempt: str) -> JSONResponse:
    """The body is what ``validator push`` packs; ``X-Content-SHA256`` its digest. Pushing it again answers 200."""
    leave = await run_in_threadpool(service.tokens.find, request.headers.get("authorization"))
    refused = await run_in_threadpool(service.intake.refuse, attempt, leave)
    if refused is not None:
        return JSONResponse({"detail": refused.sentence}, refused.status, {"Connection": "close"})
    assert leave is not None
    claimed = request.headers.get("x-content-sha256", "").lower()
    if not _HEX.fullmatch(claimed):
        raise HTTPException(400, "X-Content-SHA256 has to give the body's SHA-256 in hexadecimal.")
    limit = service.settings.result_bytes
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        return JSONResponse({"detail": f"The result is larger than {limit} bytes."}, 413, {"Connection": "close"})
    try:
        packed, digest = await service.intake.receive(request.stream(), limit)
        try:
            if digest != claimed:
                raise HTTPException(422, f"The body's SHA-256 is {digest[:12]}…, and not {claimed[:12]}….")
            answer = await run_in_threadpool(service.intake.take, attempt, packed, digest, leave)
        finally:
            packed.unlink(missing_ok=True)
    except TooLargeError as error:
        return JSONResponse({"detail": str(error)}, 413, {"Connection": "close"})
    except ClientDisconnect as error:
        raise HTTPException(400, "The body ended early.") from error
    except StorageError as error:
        raise HTTPException(507 if "full" in str(error) else 503, str(error)) from error
    except OSError as error:
        status = 507 if error.errno in _FULL else 503
        raise HTTPException(status, f"The result cannot be stored: {error.strerror}.") from error
    service.wake()
    return JSONResponse({"detail": answer.sentence}, answer.status)


@push_router.put(
    "/repositories/{owner}/{name}/commits/{commit}/results/{pipeline}", status_code=201, responses=_REFUSED,
    summary="Push a result that no job of the service asked for",
)  # fmt: skip
async def push_commit(
    request: Request, service: Here, owner: str, name: str, commit: str, pipeline: str
) -> JSONResponse:
    """For checks that a workflow started by itself: it becomes the result of the commit's open job, or a new one's."""
    leave = await run_in_threadpool(service.tokens.find, request.headers.get("authorization"))
    if leave is None or leave.job_key or leave.repository.lower() != f"{owner}/{name}".lower():
        raise HTTPException(401 if leave is None else 403, "A token of this repository is needed.")
    if not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit):
        raise HTTPException(422, "The commit is 40 or 64 hexadecimal digits.")
    if pipeline not in views.pipelines_of(service.settings):
        raise HTTPException(422, f"The base revision has no pipeline {pipeline[:100]!r}.")
    digest = request.headers.get("x-content-sha256", "").lower()
    attempt = await run_in_threadpool(service.intake.attempt_for, f"{owner}/{name}", commit, pipeline, digest)
    return await push(request, service, attempt)


@push_router.post(
    "/attempts/{attempt}/progress", status_code=204, responses=_REFUSED, summary="Say how an attempt stands"
)
def progress(request: Request, service: Here, attempt: str, said: Progress) -> None:
    leave = service.tokens.find(request.headers.get("authorization"))
    refused = service.intake.refuse(attempt, leave)
    if refused is not None:
        raise HTTPException(refused.status, refused.sentence)
    service.intake.progress(attempt, said.line)
