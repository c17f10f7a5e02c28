"""The clock of phases: each moment belongs to the innermost phase."""

from __future__ import annotations

import pytest

from validator.workload import profile


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still until a test moves it."""
    now = [100.0]
    monkeypatch.setattr("validator.workload.profile.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("validator.workload.profile.torch.cuda.synchronize", lambda: None)
    return now


def test_a_phase_does_not_count_what_runs_within_it(clock: list[float]) -> None:
    phases = profile.PhaseClock()

    def wait(seconds: float) -> float:
        clock[0] += seconds
        return seconds

    data, communicate = phases.within("data", wait), phases.within("communication", wait)

    def forward() -> None:
        wait(1.0)
        data(0.5)
        communicate(2.0)
        wait(0.25)

    phases.step()
    phases.within("forward", forward)()
    wait(0.125)
    communicate(4.0)
    phases.step()
    wait(8.0)
    phases.step()
    assert phases.steps == [
        {"forward": 1.25, "data": 0.5, "communication": 6.0, "step": 7.875},
        {"step": 8.0},
    ]


def test_a_phase_ends_where_its_function_raises(clock: list[float]) -> None:
    phases = profile.PhaseClock()

    def fails() -> None:
        clock[0] += 1.0
        raise RuntimeError("no")

    phases.step()
    with pytest.raises(RuntimeError):
        phases.within("forward", fails)()
    clock[0] += 2.0
    phases.step()
    assert phases.steps == [{"forward": 1.0, "step": 3.0}]
