"""Real changes of the software under test, against the shipped golden."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.end_to_end.command import NO_RESUME, assert_error, assert_names_its_log, check, copy_of

AT_STEP_1 = ("step:1", "gradients")


@pytest.mark.slow
def test_another_cpu_capability_is_changed_and_names_place_and_variable(tmp_path: Path) -> None:
    pipeline = copy_of("nemotron-cpu", tmp_path, NO_RESUME)
    ran = check(tmp_path, pipeline, "--env", "ATEN_CPU_CAPABILITY=avx2")
    assert (ran.code, ran.verdict) == (1, "changed"), ran.out
    assert ran.outcomes == ("fails", "holds", "not_run", "holds")
    assert ran.launches == ["reference", "repeat"]

    # Other kernels draw the initial weights: it differs before the first step, and in every gradient from then on.
    divergence = ran.report["divergence"]
    place = (divergence["moment"], divergence["rank"], divergence["group"], divergence["leaf"])
    assert place == ("setup:0", 0, "main_parameters", "output_layer.weight")
    assert divergence["expected"] != divergence["observed"]
    assert "  where     at setup, rank 0, main_parameters, output_layer.weight\n" in ran.out
    gradients = next(row for row in ran.gate("golden")["spread"] if (row["moment"], row["group"]) == AT_STEP_1)
    assert gradients["differing"] == gradients["leaves"]

    changed = [row for row in ran.report["environment_difference"] if row["name"] == "ATEN_CPU_CAPABILITY"]
    assert [(row["kind"], row["expected"], row["observed"]) for row in changed] == [("variables", "default", "avx2")]
    assert ran.report["environment_difference"][0] == changed[0]
    assert "ATEN_CPU_CAPABILITY" in ran.out
    assert "--env ATEN_CPU_CAPABILITY=avx2" in ran.report["reproduce"]


def megatron(version: str, folder: Path) -> Path:
    """A release of Megatron Core, unpacked: what ``--megatron`` takes."""
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", str(folder)]
    subprocess.run([*pip, f"megatron-core=={version}"], check=True, timeout=300, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("megatron_core-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.mark.nightly
def test_megatron_0_19_0_computes_the_same_and_says_so_twice(tmp_path: Path) -> None:
    """What is true of it: the golden of 0.19.2 holds, bit for bit, and so does resume."""
    older = megatron("0.19.0", tmp_path)
    roots = set()
    for again in ("first", "second"):
        folder = tmp_path / again
        folder.mkdir()
        ran = check(folder, "nemotron-cpu", "--megatron", str(older))
        assert (ran.code, ran.verdict) == (0, "pass"), ran.out
        assert ran.outcomes == ("holds", "holds", "holds", "holds")
        rows = {(row["kind"], row["name"]): row for row in ran.report["environment_difference"]}
        assert rows["megatron", "version"]["observed"] == "0.19.0"
        assert rows["megatron", "version"]["can_change_bits"]
        roots.add(ran.trajectory("reference").root)
    assert len(roots) == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("version", "lacks"), [("0.18.2", "megatron.training.determinism"), ("0.17.1", "megatron.training.determinism")]
)
def test_a_megatron_that_is_too_old_is_an_error_that_names_what_it_lacks(
    version: str, lacks: str, tmp_path: Path
) -> None:
    older = megatron(version, tmp_path)
    ran = check(tmp_path, "nemotron-cpu", "--megatron", str(older))
    assert_error(ran, f"megatron-core {version} lacks {lacks}, which the workload needs")
    assert_names_its_log(ran)
