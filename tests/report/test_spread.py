from __future__ import annotations

from validator.report.model import SpreadRow
from validator.report.spread import SpreadTable

ROWS = (
    SpreadRow("step:1", "metrics", 1, 14, 1),
    SpreadRow("step:2", "metrics", 2, 14, 2),
    SpreadRow("step:2", "parameters", 60, 62, 1),
    SpreadRow("step:3", "parameters", 62, 62, 2),
    SpreadRow("step:4", "parameters", 62, 62, 2),
)


def test_groups_down_moments_across() -> None:
    assert SpreadTable.of(ROWS).lines(10) == (
        ("", "step:1", "step:2", "step:3", "step:4"),
        ("metrics", "1/14", "2/14", "·", "·"),
        ("parameters", "·", "60/62", "62/62", "62/62"),
        ("ranks", "1", "2", "2", "2"),
    )


def test_the_last_moment_stays_when_some_are_left_out() -> None:
    header, *_, ranks = SpreadTable.of(ROWS).lines(3)
    assert header == ("", "step:1", "step:2", "…", "step:4")
    assert ranks == ("ranks", "1", "2", "", "2")
