"""Real Megatron launches, timed. A known slowdown sleeps in every step of one of two arms that are otherwise equal."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from validator.cli import main
from validator.overhead.record import read_record

ROOT = Path(__file__).resolve().parents[2]
POLICY = "overhead: {budget: 100 %, pairs: {min: 4, max: 8}, steps: {warmup: 3, timed: 12}}"


def measured(folder: Path, monkeypatch: pytest.MonkeyPatch, policy: str, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit status and the record of one run of the command on nemotron-cpu with another overhead policy."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    text = (ROOT / "pipelines" / "nemotron-cpu.yaml").read_text()
    assert POLICY in text
    (folder / "pipelines").mkdir()
    pipeline = folder / "pipelines" / "nemotron-cpu.yaml"
    pipeline.write_text(text.replace(POLICY, policy))
    monkeypatch.chdir(folder)
    out = folder / "out"
    code = main(["overhead", str(pipeline), "--out", str(out), *words])
    return code, read_record(out / "overhead.json")


def bounds(log_ratios: list[float]) -> tuple[float, float]:
    """Student's t interval of 99.9 %: at the 95 % that a record reports, one night in seven would fail by chance."""
    found = stats.ttest_1samp(log_ratios, 0.0).confidence_interval(0.999)
    return float(found.low), float(found.high)


@pytest.mark.slow
@pytest.mark.system
@pytest.mark.timeout(300)
def test_a_first_look_on_real_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, record = measured(tmp_path, monkeypatch, "overhead: {steps: {warmup: 1, timed: 3}}", "--quick")
    assert code == 0
    deterministic, default = record["arms"]
    assert [len(arm["launches"]) for arm in record["arms"]] == [2, 2]
    assert all(len(launch["steps"]) == 3 for arm in record["arms"] for launch in arm["launches"])
    torch = deterministic["torch"]
    assert (torch["deterministic_algorithms"], torch["mkldnn"], torch["cpu_capability"]) == (True, False, "DEFAULT")
    torch = default["torch"]
    assert (torch["deterministic_algorithms"], torch["mkldnn"], torch["threads"]) == (False, True, 1)
    assert torch["cpu_capability"] != "DEFAULT"
    # 8 samples of 64 tokens in a step.
    rate = 8 * 64 / default["step_seconds"]["median"]
    assert default["tokens_per_second"] == pytest.approx(rate, rel=1e-4)
    assert 2**28 < default["peak_memory_bytes"] < 2**32


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_whole_measurement_with_its_breakdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, record = measured(tmp_path, monkeypatch, POLICY, "--html", str(tmp_path / "page.html"))
    assert code in {0, 1, 4}
    assert record["seconds"] <= 360
    phases = {row["name"]: row["seconds"] for row in record["breakdown"]["phases"]}
    for arm in ("deterministic", "default"):
        assert all(phases[name][arm] > 0 for name in ("forward", "backward", "optimizer", "communication", "data"))
    assert any(row["name"].startswith("aten::") for row in record["breakdown"]["operators"])
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("slowdown", "decision"), [(0.03, "holds"), (0.10, None), (0.30, "fails")])
def test_a_known_slowdown_is_measured_within_its_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slowdown: float, decision: str | None
) -> None:
    policy = "overhead: {budget: 10 %, pairs: {min: 8, max: 8}, steps: {warmup: 3, timed: 16}}"
    code, record = measured(tmp_path, monkeypatch, policy, "--noise", "--switch", f"slowdown={slowdown}")
    print(json.dumps(record["overhead"]))
    lower, upper = bounds([pair["log_ratio"] for pair in record["pairs"]])
    assert lower <= math.log1p(slowdown) <= upper
    if decision is not None:
        assert code == 0  # the noise floor is below the budget
        assert record["decision"] == decision
