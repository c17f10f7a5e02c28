"""Shared by all tests: a double of the launch, and a temporary project that launches it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.double.double import Double
from tests.project import PIPELINE, Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests: a second one in the same process is refused by its driver."""
    from tests.report.html.browser import chromium

    with chromium() as opened:
        yield opened


@pytest.fixture
def double(tmp_path: Path) -> Double:
    """A double without faults."""
    return Double.create(tmp_path / "double")


@pytest.fixture
def project(
    tmp_path: Path, double: Double, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A temporary project, which is the working directory."""
    folder = tmp_path / "project"
    (folder / "pipelines").mkdir(parents=True)
    monkeypatch.chdir(folder)
    made = Project(folder, double, capsys)
    made.pipeline.write_text(PIPELINE)
    return made
