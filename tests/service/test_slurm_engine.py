"""The Slurm engine, with programs in the place of Slurm's at the command line."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from validator.service.engines.model import EngineError, Order, Standing
from validator.service.engines.slurm import SlurmEngine
from validator.service.engines.work import Work

ORDER = Order("a" * 20 + "-1", "team/train", None, "1" * 40, "tiny", "", 7, "vpt_secret")

#: Notes its words, then does what the file beside it says: standard output, standard error, exit status.
PROGRAM = """#!/bin/sh
for word in "$0" "$@"; do printf '%s\\0' "$word"; done >>"{folder}/asked"
printf '\\n' >>"{folder}/asked"
cat "{folder}/$(basename "$0").out" 2>/dev/null
cat "{folder}/$(basename "$0").err" >&2 2>/dev/null
exit "$(cat "{folder}/$(basename "$0").status" 2>/dev/null || echo 0)"
"""


@dataclass
class Commands:
    """``sbatch``, ``squeue`` and ``scancel`` that answer as they are told."""

    folder: Path

    def answer(self, name: str, out: str = "", err: str = "", status: int = 0) -> None:
        for ending, text in (("out", out), ("err", err), ("status", str(status))):
            (self.folder / f"{name}.{ending}").write_text(text)

    @property
    def asked(self) -> list[list[str]]:
        """Every call: the program's name and its words."""
        calls = [line.rstrip("\0").split("\0") for line in (self.folder / "asked").read_text().splitlines()]
        return [[Path(words[0]).name, *words[1:]] for words in calls]


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commands:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sbatch", "squeue", "scancel"):
        program = folder / name
        program.write_text(PROGRAM.format(folder=folder))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return Commands(folder)


@pytest.fixture
def engine(tmp_path: Path) -> SlurmEngine:
    about = {"url": "https://validator.example", "project": "/project", "prepare": "", "options": ""}
    return SlurmEngine(tmp_path / "work", about, "--partition=gpu --gres gpu:8")


def test_an_attempt_is_one_batch_job_of_its_name(engine: SlurmEngine, slurm: Commands, tmp_path: Path) -> None:
    slurm.answer("sbatch", "4711;cluster\n")
    assert engine.hand_over(ORDER) == "4711"
    ((program, *words),) = slurm.asked
    assert program == "sbatch"
    assert words[words.index("--job-name") + 1] == f"validator-{ORDER.attempt}"
    assert "--no-requeue" in words
    assert words[words.index("--export") + 1] == "NIL"  # nothing of the service's own variables, so no secret
    assert ("--partition=gpu" in words, words[words.index("--gres") + 1]) == (True, "gpu:8")
    work = Work(tmp_path / "work" / ORDER.attempt)
    assert words[words.index("--wrap") + 1].endswith(f"-m validator.service.engines.runner {work.folder}")
    assert ORDER.token not in " ".join(words)
    order = json.loads(work.order.read_text())
    assert (order["commit"], order["pipeline"], order["url"]) == ("1" * 40, "tiny", "https://validator.example")
    assert ORDER.token not in work.order.read_text()
    assert (work.token.read_text(), stat.S_IMODE(work.token.stat().st_mode)) == (ORDER.token, 0o600)


def test_after_a_crash_it_is_found_by_its_name(engine: SlurmEngine, slurm: Commands) -> None:
    slurm.answer("squeue", "")
    assert engine.find(ORDER, 0.0) is None
    slurm.answer("squeue", "4711\n")
    assert engine.find(ORDER, 0.0) == "4711"
    assert all(f"validator-{ORDER.attempt}" in words for words in slurm.asked)


@pytest.mark.parametrize(
    ("state", "standing", "sentence"),
    [
        ("PENDING", Standing.QUEUED, "Slurm job 4711 is pending."),
        ("CONFIGURING", Standing.QUEUED, "Slurm job 4711 is configuring."),
        ("RUNNING", Standing.RUNNING, "[1/4] step 3 of 10"),
        ("COMPLETING", Standing.RUNNING, "[1/4] step 3 of 10"),
        ("NODE_FAIL", Standing.LOST, "Slurm job 4711 is node_fail and left no result."),
        ("CANCELLED", Standing.LOST, "Slurm job 4711 is cancelled and left no result."),
        ("", Standing.LOST, "Slurm job 4711 is gone and left no result."),
    ],
)
def test_how_it_stands(
    engine: SlurmEngine, slurm: Commands, tmp_path: Path, state: str, standing: Standing, sentence: str
) -> None:
    work = Work(tmp_path / "work" / ORDER.attempt)
    work.folder.mkdir(parents=True)
    work.write(work.progress, "[1/4] step 3 of 10\n")
    slurm.answer("squeue", f"{state}\n")
    look = engine.look(ORDER, "4711")
    assert (look.standing, look.sentence) == (standing, sentence)


def test_its_end_is_what_the_runner_left(engine: SlurmEngine, slurm: Commands, tmp_path: Path) -> None:
    work = Work(tmp_path / "work" / ORDER.attempt)
    work.folder.mkdir(parents=True)
    work.write(work.end, {"sentence": "nvcr.io/x is no image", "final": True})
    slurm.answer("squeue", "", "slurm_load_jobs error: Invalid job id specified\n", 1)  # forgotten after some minutes
    look = engine.look(ORDER, "4711")
    assert (look.standing, look.sentence, look.final) == (Standing.ENDED, "nvcr.io/x is no image", True)
    slurm.answer("scancel", "", "scancel: error: Kill job error on job id 4711: Invalid job id specified\n", 1)
    engine.cancel(ORDER, "4711")  # what has ended is no error


def test_a_controller_that_is_away_is_no_end(engine: SlurmEngine, slurm: Commands) -> None:
    away = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
    for name in ("squeue", "sbatch", "scancel"):
        slurm.answer(name, "", away, 1)
    for call in (
        lambda: engine.look(ORDER, "4711"), lambda: engine.find(ORDER, 0.0), lambda: engine.hand_over(ORDER),
        lambda: engine.cancel(ORDER, "4711"),
    ):  # fmt: skip
        with pytest.raises(EngineError, match="Unable to contact slurm controller") as refused:
            call()
        assert not refused.value.final


def test_a_machine_without_slurm_is_one_sentence(
    engine: SlurmEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="There is no sbatch on this machine; install Slurm's commands"):
        engine.hand_over(ORDER)
