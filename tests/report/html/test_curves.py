"""Metric curves: values, distance, and what is left out of long ones."""

from __future__ import annotations

import math
import re
from pathlib import Path

from tests.trajectory.synthetic import Launch, moments
from validator.report.html.chart import chart, summary
from validator.report.html.curves import Curve, Point, chosen, draw_curves, thinned
from validator.trajectory.groups import Moment, Phase
from validator.trajectory.metrics import Metric


def _launch(loss: dict[int, float], steps: int = 4) -> Launch:
    def metrics(rank: int, moment: Moment) -> dict[str, Metric]:
        if moment.phase is not Phase.STEP:
            return {}
        return {"loss": Metric.of(loss.get(moment.step, 8.0 - moment.step), "float32"), "tokens": Metric.of(4, "int64")}

    return Launch(moments=moments(steps), metrics=metrics)


def test_one_ulp_is_one(tmp_path: Path) -> None:
    next_after_five = 5.0 + 2**-21
    expected, observed = _launch({}).seal(tmp_path / "a"), _launch({3: next_after_five}).seal(tmp_path / "b")
    loss, tokens = draw_curves(expected, observed)
    assert (loss.title, tokens.title, tokens.constant) == ("loss", "tokens", True)
    assert [point.ulps for point in loss.points] == [0, 0, 1, 0]
    assert loss.first is not None
    assert loss.first.step == 3
    assert summary(loss) == "differs from step 3 on, at most 1 ULP apart"
    drawing = chart(loss, "golden", "reference")
    assert drawing.count("<polyline") == 2
    assert drawing.count('class="bar"') == 1


def test_nan_has_no_distance_and_no_place_but_a_bar(tmp_path: Path) -> None:
    expected, observed = _launch({}).seal(tmp_path / "a"), _launch({2: math.nan}).seal(tmp_path / "b")
    loss, _ = draw_curves(expected, observed)
    assert loss.points[1].ulps is None
    drawing = chart(loss, "golden", "reference")
    assert drawing.count('class="bar undefined"') == 1
    assert "nan" not in drawing.lower()
    assert summary(loss) == "differs from step 2 on"


def test_ranks_that_differ_among_themselves_have_curves_of_their_own(tmp_path: Path) -> None:
    def metrics(rank: int, moment: Moment) -> dict[str, Metric]:
        return {"load": Metric.of(rank + moment.step / 8), "loss": Metric.of(1.0 * moment.step)}

    launch = Launch(metrics=metrics)
    curves = draw_curves(launch.seal(tmp_path / "a"), launch.seal(tmp_path / "b"))
    assert sorted(curve.title for curve in curves) == ["load, rank 0", "load, rank 1", "loss"]


def test_without_another_side_nothing_differs(tmp_path: Path) -> None:
    loss, _ = draw_curves(None, _launch({}).seal(tmp_path / "a"))
    assert (loss.first, loss.compared, summary(loss)) == (None, False, "4 steps")
    assert chart(loss, "golden", "reference").count("<polyline") == 1


def test_a_metric_that_only_one_side_has_differs(tmp_path: Path) -> None:
    def extra(rank: int, moment: Moment) -> dict[str, Metric]:
        return {"loss": Metric.of(1.0), "new": Metric.of(2.0)}

    def plain(rank: int, moment: Moment) -> dict[str, Metric]:
        return {"loss": Metric.of(1.0)}

    curves = draw_curves(Launch(metrics=plain).seal(tmp_path / "a"), Launch(metrics=extra).seal(tmp_path / "b"))
    assert curves[0].name == "new"
    assert curves[0].first is not None


def test_thinning_keeps_the_first_to_differ_and_the_farthest() -> None:
    def point(step: int) -> Point:
        apart = {101: 1, 105: 50, 700: 2**20}.get(step, 0)
        return Point(step, Metric("float32", "3f800000"), Metric("float32", f"{0x3F800000 + apart:08x}"))

    points = [point(step) for step in range(1, 1001)]
    kept = thinned(points, 100)
    assert len(kept) == 100
    assert {101, 700} <= {each.step for each in kept}
    assert Curve("loss", None, kept, 1000).first == point(101)


def test_of_many_ranks_the_ends_and_the_wanted_are_read() -> None:
    assert chosen(range(4), 2, 8) == [0, 1, 2, 3]
    assert {0, 683, 1023} <= set(chosen(range(1024), 683, 4))
    assert len(chosen(range(1024), 683, 4)) == 4
    assert chosen(range(1024), None, 2) == [0, 1023]


def test_a_drawing_holds_numbers_only_within_its_frame(tmp_path: Path) -> None:
    loss, _ = draw_curves(None, _launch({1: 3e38, 2: -3e38}).seal(tmp_path / "a"))
    drawing = chart(loss, "", "reference")
    places = [float(word) for pair in re.findall(r'points="([^"]*)"', drawing) for word in re.split("[ ,]", pair)]
    assert all(0 <= place <= 600 for place in places)
