"""Runs the service under uvicorn until it is told to end."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import uvicorn

from validator.errors import UsageError
from validator.service.app import create_app
from validator.service.core import Service, set_up_logging
from validator.service.settings import Settings

#: After this many seconds requests that are still answered are broken off.
_PATIENCE = 10


def serve(settings: Settings, ready: Path | None = None) -> None:
    """Serve until SIGTERM or Ctrl-C. ``ready`` is a file that the address is written to, once it is listened on.

    Raises ``ValidatorError`` where it cannot begin.
    """
    set_up_logging(settings)
    listening = _listen(settings)
    port = int(listening.getsockname()[1])
    service = Service.build(replace(settings, port=port))
    service.database.upgrade()
    config = uvicorn.Config(
        create_app(service), log_config=None, access_log=False, server_header=False, date_header=True,
        timeout_graceful_shutdown=_PATIENCE, proxy_headers=False, h11_max_incomplete_event_size=64 * 1024,
    )  # fmt: skip
    if ready is not None:
        part = ready.with_name(f".{ready.name}.part")
        part.write_text(f"http://{settings.host}:{port}\n")
        part.replace(ready)
    asyncio.run(uvicorn.Server(config).serve([listening]))


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise UsageError(
            f"{settings.host}:{settings.port} cannot be listened on ({error.strerror}); change VALIDATOR_HOST or "
            "VALIDATOR_PORT."
        ) from error
    return listening
