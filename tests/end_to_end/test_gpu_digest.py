"""A real launch recorded with the digest of launches on a GPU, computed by PyTorch on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.command import check, copy_of
from validator.trajectory.groups import Group, Moment

pytestmark = pytest.mark.slow

#: One launch; what it recorded is never compared with the CPU's golden.
ONE_LAUNCH = {"repeatability: required, resume: required}": "repeatability: off, resume: off}"}


def test_the_host_recomputes_what_a_launch_recorded_and_refuses_to_compare_it(tmp_path: Path) -> None:
    pipeline = copy_of("nemotron-cpu", tmp_path, ONE_LAUNCH)
    checked = check(tmp_path, pipeline, "--switch", "digest=pytorch")
    assert (checked.code, checked.verdict) == (3, "error")
    sentence = checked.gate("golden")["sentence"]
    assert "different algorithms, xxh3-128/1 and mixsum-128/1" in sentence
    recorder = checked.gate("recorder")
    assert recorder["outcome"] == "holds"
    assert recorder["sentence"].endswith("Digests by PyTorch: --switch digest=pytorch.")
    trajectory = checked.trajectory("reference")
    assert trajectory.algorithm == "mixsum-128/1"
    told = trajectory.endings[1]["digest"]
    assert told == {"algorithm": "mixsum-128/1", "implementation": "PyTorch", "why": "--switch digest=pytorch"}
    # Written a moment late, and nothing of it is missing.
    assert trajectory.moments[-1] == Moment(10)
    assert all(Group.OPTIMIZER in trajectory.groups(rank, moment) for rank in (0, 1) for moment in trajectory.moments)
