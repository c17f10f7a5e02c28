"""Real training on a GPU: from the first check of nemotron-h200 to a golden that a later run matches, in the order in
which a person does it; and what the fastest mode does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchmarks.gpu import candidate
from tests.end_to_end.command import ROOT, Checked
from tests.gpu.command import check, python
from validator.environment import observe_host
from validator.environment.nvml import read_devices
from validator.pipeline import load_pipeline

pytestmark = pytest.mark.gpu

NAME = "nemotron-h200"

#: Leaves in which a resume of megatron-core 0.19.2 itself is wrong. Anything else that differs is a failure.
UPSTREAM = {"rng/cpu", "rng/expert-parallel-rng"}


@dataclass(frozen=True)
class First:
    """The first check, and the pipeline with the waivers that it suggested, written out."""

    checked: Checked
    judged: dict[str, Any]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> First:
    folder = tmp_path_factory.mktemp("first")
    (folder / "golden").mkdir()
    checked = check(folder, NAME, "--golden", str(folder / "golden"), "--overhead", "off")
    known = candidate.known_defects(ROOT)
    return First(checked, candidate.judge(checked.report, load_pipeline(NAME, ROOT), folder, known))


def test_nvml_and_nvidia_smi_name_the_same_gpus() -> None:
    pytest.importorskip("pynvml", reason="NVML's binding (nvidia-ml-py) is not installed")
    host = observe_host()
    assert host.gpus
    assert [gpu.name for gpu in host.gpus] == [device.name for device in read_devices()]
    assert {gpu.driver for gpu in host.gpus} == {device.driver for device in read_devices()}


def test_it_is_repeatable_and_its_recorder_sees(first: First) -> None:
    checked = first.checked
    assert checked.gate("golden")["outcome"] == "no_baseline"
    assert checked.gate("repeatability")["outcome"] == "holds", checked.out
    recorder = checked.gate("recorder")
    assert recorder["outcome"] == "holds", checked.out
    assert "PyTorch" not in recorder["sentence"]  # Triton's kernel was sane
    assert checked.trajectory("reference").algorithm == "mixsum-128/1"


def test_it_resumes_but_for_what_upstream_breaks(first: First) -> None:
    assert first.judged["holds"], first.checked.out
    assert set(first.judged["waived"]) <= UPSTREAM
    assert first.checked.verdict == ("resume_broken" if first.judged["waived"] else "no_baseline")


def test_a_golden_is_recorded_with_these_waivers_and_matched_by_a_later_run(first: First, tmp_path: Path) -> None:
    pipeline, store = Path(first.judged["pipeline"]), tmp_path / "golden"
    names = ("--approver", "GPU tests", "--reason", "a test")
    recorded = python(
        "-m", "validator", "golden", "record", str(pipeline), "--golden", str(store), "--out", str(tmp_path / "record"),
        *names,
    )  # fmt: skip
    assert recorded.code == 0, recorded.out + recorded.err
    once = tmp_path / pipeline.name
    once.write_text(pipeline.read_text().replace("resume: required}", "resume: off}"))
    checked = check(tmp_path, once, "--golden", str(store), "--overhead", "off")
    assert checked.launches == ["reference"]
    assert (checked.code, checked.verdict) == (0, "pass"), checked.out


def test_the_default_mode_is_not_deterministic_and_its_first_difference_is_localised(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    script = str(ROOT / "benchmarks" / "gpu" / "default_mode.py")
    ran = python(script, NAME, "--out", str(tmp_path / "out"), "--json", str(file))
    assert ran.code == 0, ran.out + ran.err
    found = json.loads(file.read_text())
    assert not found["agree"]
    assert found["localisation"]["outcome"] in {"module", "group"}
