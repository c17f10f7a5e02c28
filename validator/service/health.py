"""For whoever watches the service: is it alive, is it ready, and figures for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from validator.service.core import Service
from validator.service.measures import registry

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="Whether the process answers")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@router.get("/readyz", summary="Whether webhooks can be stored and jobs go on; 503 says in sentences what is wrong")
def readyz(request: Request) -> JSONResponse:
    service: Service = request.app.state.service
    problems = service.problems()
    return JSONResponse({"status": "not ready" if problems else "ok", "problems": problems}, 503 if problems else 200)


@router.get("/metrics", summary="Figures in Prometheus' text format")
def metrics(request: Request) -> Response:
    return Response(generate_latest(registry(request.app.state.service)), media_type=CONTENT_TYPE_LATEST)
