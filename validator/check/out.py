"""The folder of one run, and files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
from datetime import datetime
from pathlib import Path

from validator.errors import LaunchError
from validator.report.json import render_json
from validator.report.junit import render_junit
from validator.report.markdown import render_markdown
from validator.report.model import Report

#: Where runs go that are given no folder; it ignores itself, so that no run is committed by accident.
RUNS = "runs"


def default_out(directory: Path, name: str, now: datetime) -> Path:
    """A new folder under ``directory``/runs named by pipeline and time. Raises ``LaunchError`` where it cannot be
    made.
    """
    runs = directory / RUNS
    try:
        runs.mkdir(exist_ok=True)
        ignore = runs / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="ascii")
        stem = f"{name}-{now:%Y%m%d-%H%M%S}"
        for number in range(1000):
            out = runs / (f"{stem}-{number}" if number else stem)
            try:
                out.mkdir()
            except FileExistsError:
                continue
            return out
    except OSError as error:
        raise LaunchError(f"{runs} cannot be written ({error.strerror}); give --out.") from error
    raise LaunchError(f"{runs} holds a thousand runs of this second; give --out.")


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` through a temporary name. Raises ``LaunchError`` where the disk is full or the place not
    writable.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise LaunchError(f"{path} cannot be written ({error.strerror}); free space or name another file.") from error


def write_reports(report: Report, out: Path, json: str | None, markdown: str | None, junit: str | None) -> None:
    """Write the report into ``out`` and to every file asked for; one that cannot be written does not hinder the others.

    Raises the first ``LaunchError`` once all have been tried.
    """
    problem: LaunchError | None = None
    files = [
        (json, render_json),
        (markdown, render_markdown),
        (junit, render_junit),
        (out / "report.json", render_json),
    ]
    for file, render in files:
        if file is not None:
            try:
                write_whole(Path(file), render(report))
            except LaunchError as error:
                problem = problem or error
    if problem is not None:
        raise problem
