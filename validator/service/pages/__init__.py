"""The pages that people read. Nothing here changes anything."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles


def mount_static(app: FastAPI) -> None:
    """Serve the style sheet, the script and the icon."""
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
