"""Results of checks, made once for all tests of the page."""

from __future__ import annotations

import pytest

from tests.report.html.results import Results


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return Results(tmp_path_factory.mktemp("results"))
