"""The web app: doors to webhooks, results, the JSON API, pages, metrics and health."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.orm.exc import StaleDataError
from starlette.exceptions import HTTPException

from validator import __version__
from validator.service import api, health, pages
from validator.service.core import Service
from validator.service.database import StorageError
from validator.service.pages import routes
from validator.service.webhooks import door

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
}


def create_app(service: Service) -> FastAPI:
    """The app of a service; its background work begins and ends with the app."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            service.stop()

    app = FastAPI(
        title="Megatron change validator", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json",
        description="Checks that were asked for, their results, goldens and waivers. Reading needs no token.",
    )  # fmt: skip
    app.state.service = service
    for router in (door.router, api.router, api.push_router, health.router, routes.router):
        app.include_router(router)
    pages.mount_static(app)

    @app.middleware("http")
    async def headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    @app.exception_handler(StorageError)
    async def storage(request: Request, error: StorageError) -> Response:
        return _answer(request, 503, str(error), {"Retry-After": "10"})

    @app.exception_handler(StaleDataError)
    async def stale(request: Request, _: StaleDataError) -> Response:
        return _answer(request, 503, "Too many changes at once; try again.", {"Retry-After": "1"})

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return _answer(request, 422, f"{place}: {first['msg']}.")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return _answer(request, error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def defect(request: Request, _: Exception) -> Response:
        return _answer(request, 500, "This is a defect of the service; its log says more.")

    return app


def _answer(request: Request, status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """A sentence as a page for people, as JSON for programs."""
    wants_page = "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")
    if wants_page:
        return routes.message(request, status, sentence, headers)
    return JSONResponse({"detail": sentence}, status, headers)
