"""The real command line, in a process of its own, on real Megatron; and copies of a shipped pipeline."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.execute.launching import processes_of_launches_in
from tests.project import Ran
from validator.trajectory.reader import Trajectory

ROOT = Path(__file__).resolve().parent.parent.parent

#: The command as ``make setup`` installs it.
VALIDATOR = Path(sys.executable).with_name("validator")

#: No test waits longer than this for one command, in seconds; a whole check takes about a minute.
LIMIT = 500

# What copies of a pipeline change. None touches the computation, so the shipped golden stays the one to compare with.
NO_RESUME = {"resume: required}": "resume: off}"}
ONLY_RESUME = {"golden: required, repeatability: required,": "golden: off, repeatability: off,"}


@dataclass(frozen=True)
class Checked(Ran):
    """A check that ran, with the folder that it left behind."""

    folder: Path

    def trajectory(self, launch: str) -> Trajectory:
        """What one of its launches left behind; raises ``TrajectoryError`` where that is not whole."""
        return Trajectory.open(self.folder / "launches" / launch / "trajectory")

    @property
    def launches(self) -> list[str]:
        return [str(launch["name"]) for launch in self.report["launches"]]

    def spread(self, gate: str) -> dict[tuple[str, str], int]:
        """(moment, group) -> how many leaves differ, over all ranks."""
        return {(row["moment"], row["group"]): row["differing"] for row in self.gate(gate)["spread"]}

    def argument(self, name: str) -> str:
        """A Megatron argument as the launch resolved it."""
        return str(self.report["environment"]["facts"]["arguments"][name][1])


def validator(*words: str, prefix: Sequence[str] = (), limit: float = LIMIT) -> Ran:
    """Run ``validator WORDS`` in the project's folder, behind ``prefix`` (``prlimit …``), in ``limit`` seconds."""
    done = subprocess.run(
        [*prefix, str(VALIDATOR), *words], capture_output=True, text=True, check=False, cwd=ROOT, timeout=limit
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return Ran(done.returncode, done.stdout, done.stderr, {})


def check(
    folder: Path, pipeline: str | Path, *words: str, prefix: Sequence[str] = (), out: Path | None = None
) -> Checked:
    """``validator check PIPELINE``, its run in ``out`` or ``folder``/out; asserts what holds whatever a check finds."""
    out, file = out or folder / "out", folder / "report.json"
    ran = validator("check", str(pipeline), "--out", str(out), "--json", str(file), *words, prefix=prefix)
    assert processes_of_launches_in(out) == []
    assert not list(out.rglob("*.part"))
    report = json.loads(file.read_text())
    assert report["exit_code"] == ran.code
    assert ran.out.startswith(f"{report['verdict'].upper()}  {report['sentence']}\n")
    assert all(character.isprintable() or character == "\n" for character in ran.out + ran.err)
    return Checked(ran.code, ran.out, ran.err, report, out)


def assert_error(checked: Checked, sentence: str) -> None:
    """The verdict is ``error``, exit 3, told in one sentence that holds ``sentence``; nothing failed was taken for
    whole.
    """
    assert (checked.code, checked.verdict) == (3, "error"), checked.out + checked.err
    assert sentence in checked.report["sentence"]
    for launch in checked.report["launches"]:
        if launch["ended"] == "failed":
            assert not (checked.folder / "launches" / launch["name"] / "trajectory" / "trajectory.json").exists()


def assert_names_its_log(checked: Checked) -> None:
    """The sentence ends with the path of the failed launch's log, which is there."""
    log = Path(str(checked.report["launches"][-1]["log"]))
    assert log.is_file()
    assert str(checked.report["sentence"]).endswith(f"see {log}.")


def copy_of(name: str, folder: Path, *changes: Mapping[str, str]) -> Path:
    """A shipped pipeline with pieces of its text replaced, each of which must be there; its name stays."""
    text = (ROOT / "pipelines" / f"{name}.yaml").read_text(encoding="utf-8")
    for old, new in [pair for each in changes for pair in each.items()]:
        assert old in text, old
        text = text.replace(old, new)
    file = folder / f"{name}.yaml"
    file.write_text(text, encoding="utf-8")
    return file
