from __future__ import annotations

import pytest

from validator.trajectory.groups import Moment, Phase


def test_moments_are_ordered_in_time() -> None:
    fresh = ["setup:0", "entry:0", "step:1", "step:2"]
    restored = ["step:3", "setup:3", "entry:3", "step:4", "step:10"]
    for names in (fresh, restored):
        moments = [Moment.parse(name) for name in names]
        backwards = moments[::-1]
        assert sorted(backwards, key=lambda moment: moment.order) == moments
        assert [str(moment) for moment in moments] == names


def test_step_is_the_usual_phase() -> None:
    assert Moment(3) == Moment(3, Phase.STEP)


@pytest.mark.parametrize("text", ["", "step", "step:", "step:-1", "step:1 ", "save:1", "step:1\n", "STEP:1"])
def test_anything_else_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="no moment"):
        Moment.parse(text)
