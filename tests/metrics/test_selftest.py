"""A self-test's record on its way to Prometheus."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.test_publish import read
from tests.selftest.test_outcome import CAUGHT, MODULE, NOT_HERE, result
from validator.metrics.publish import publish
from validator.selftest.outcome import Outcome


def written(folder: Path, **changes: Any) -> Path:
    """The record of a self-test with four effective faults: three caught, two of them named."""
    faults = (
        CAUGHT,
        MODULE,
        replace(CAUGHT, outcome=Outcome.CAUGHT),
        replace(CAUGHT, outcome=Outcome.MISSED),
        NOT_HERE,
    )
    file = folder / "selftest.json"
    file.write_text(json.dumps({**result(*faults).to_json(), **changes}))
    return file


def test_its_rates_are_over_effective_faults(tmp_path: Path) -> None:
    target = tmp_path / "out.prom"
    assert publish([written(tmp_path)], None, str(target), tmp_path, {}) == []
    found = {name: value for (name, pipeline), value in read(target).items() if pipeline == "tiny"}
    assert found == {
        "validator_selftest_caught_ratio": 0.75,
        "validator_selftest_named_ratio": 0.5,
        "validator_selftest_effective_faults": 4,
        # 2026-11-30T00:00:00Z and a minute
        "validator_selftest_timestamp_seconds": 1795996860,
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quick": True}, "belongs to no curve"),
        ({"stamps": ["--env A=1"]}, "is stamped (--env A=1)"),
        ({"version": 2}, "is of version 2; this validator reads version 1"),
        ({"rates": {"caught": {"part": 3, "whole": 2}, "named": {"part": 0, "whole": 2}}}, "do not go together"),
        ({"rates": {"caught": {"part": "3", "whole": 4}, "named": {"part": 0, "whole": 2}}}, "is broken"),
        ({"rates": {}}, "is broken"),
        ({"started": "yesterday"}, "is broken"),
        ({"hardware_class": None}, "is broken"),
    ],
)
def test_what_belongs_to_no_curve_or_is_broken_is_named_and_skipped(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    file, target = written(tmp_path, **changes), tmp_path / "out.prom"
    (line,) = publish([file], None, str(target), tmp_path, {})
    assert line.startswith("Skipped: ")
    assert words in line
    assert str(file) in line
    assert not target.exists()
