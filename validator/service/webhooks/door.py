"""The address that GitHub delivers to."""

from __future__ import annotations

import logging

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from validator.service.core import Service

log = logging.getLogger(__name__)

router = APIRouter()


@router.post("/webhooks/github", status_code=202, tags=["webhooks"], summary="Take one of GitHub's events in")
async def github(request: Request) -> JSONResponse:
    """Answers 202 once the job is stored, 200 for a delivery that was received before; 401 for a wrong signature, 409
    for a replay, 413 and 400 for a body that is too large or malformed, 503 where nothing can be stored.
    """
    service: Service = request.app.state.service
    limit = service.settings.webhook_bytes
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        return _answer(413, "refused", f"The body is larger than {limit} bytes.")
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return _answer(415, "refused", "Set the webhook's content type to application/json.")
    body = bytearray()
    try:
        async for block in request.stream():
            body += block
            if len(body) > limit:
                return _answer(413, "refused", f"The body is larger than {limit} bytes.")
    except ClientDisconnect:
        return _answer(400, "refused", "The body ended early.")
    headers = {name.lower(): value for name, value in request.headers.items()}
    answer = await run_in_threadpool(service.receiver.webhook, headers, bytes(body))
    log.info("webhook %s: %d %s", headers.get("x-github-event", "")[:64], answer.status, answer.outcome)
    service.wake()
    return _answer(answer.status, answer.outcome, answer.sentence)


def _answer(status: int, outcome: str, sentence: str) -> JSONResponse:
    headers = {"Connection": "close"} if status == 413 else {"Retry-After": "60"} if status == 503 else {}
    return JSONResponse({"outcome": outcome, "detail": sentence}, status, headers)
