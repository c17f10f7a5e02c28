"""``benchmarks/on_gpu.sh``: which sections run when, with a stand-in for Python; and what the real one says."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: In the place of Python: notes when it began and ended, and what it was given. Only the table is real.
STAND_IN = """\
#!/bin/sh
case "$*" in *benchmarks/gpu/figures.py*) exec {python} "$@" ;; esac
case "$*" in "-I -c"*) [ -z "$LACKS" ] || {{ echo "a warning"; echo "$LACKS"; exit 1; }} >&2; exit 0 ;; esac
echo "begin $*" >>"$NOTES"
echo "$PYTHONPATH" >>"$NOTES.path"
echo "$SECONDS_LEFT" >>"$NOTES.left"
sleep "${{PACE:-0.05}}"
echo "end $*" >>"$NOTES"
case "$*" in *"${{FAILS:-nothing}}"*) echo "it failed"; exit 7 ;; esac
"""

#: What each section starts, in short.
STARTED = {
    "facts": "gpu/facts.py", "digest": "gpu/digest_throughput.py", "tests": "-m pytest", "golden": "gpu/golden.py",
    "check": "validator check nemotron-h200", "default-mode": "gpu/default_mode.py", "cpu": "nemotron-cpu.yaml",
    "fingerprints": "fingerprint_overhead.py", "overhead": "gpu/first_look.py",
}  # fmt: skip

TIMED = ("digest", "fingerprints", "overhead")


@dataclass(frozen=True)
class Script:
    """The script with a stand-in; its output goes to ``folder``/out."""

    folder: Path

    def environment(self, **variables: str) -> dict[str, str]:
        program = self.folder / "python"
        program.write_text(STAND_IN.format(python=shlex.quote(sys.executable)))
        program.chmod(0o755)
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return {**clean, "PYTHON": str(program), "NOTES": str(self.folder / "notes"), **variables}

    def command(self, *words: str) -> list[str]:
        return [str(ROOT / "benchmarks" / "on_gpu.sh"), "--out", str(self.folder / "out"), *words]

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words), env=self.environment(**variables), capture_output=True, text=True, check=False,
            timeout=60,
        )  # fmt: skip

    @property
    def notes(self) -> list[str]:
        return (self.folder / "notes").read_text().splitlines()

    @property
    def found(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "out" / "on_gpu.json").read_text())
        return content

    @property
    def ends(self) -> dict[str, int | None]:
        return {section["name"]: section["status"] for section in self.found["sections"]}

    def when(self, what: str, section: str) -> int:
        """The line on which what a section starts begins or ends."""
        (line,) = [n for n, note in enumerate(self.notes) if note.startswith(what) and STARTED[section] in note]
        return line


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


def test_everything_runs_once_and_the_table_says_that_it_held(script: Script) -> None:
    ran = script.run()
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert script.ends == dict.fromkeys(STARTED, 0)
    assert script.found["pipeline"] == "nemotron-h200"
    assert ran.stdout.count("held") == len(STARTED)
    assert "not run" not in ran.stdout


def test_what_is_timed_has_the_machine_to_itself(script: Script) -> None:
    script.run(PACE="0.3")
    for section in TIMED:
        assert script.when("end", section) == script.when("begin", section) + 1
    # Two launches at a time where nothing is timed.
    assert script.when("begin", "tests") < script.when("end", "golden")
    assert script.when("begin", "golden") < script.when("end", "tests")
    order = ("facts", "digest", "golden", "check", "fingerprints", "overhead")
    assert sorted(order, key=lambda section: script.when("begin", section)) == list(order)


def test_a_check_is_judged_by_what_it_left_and_not_by_its_exit_status(script: Script) -> None:
    """Without waivers it ends in resume_broken; ``candidate.py`` says whether only known defects are behind that."""
    assert script.run("check", FAILS="validator check").returncode == 0
    assert script.run("check", FAILS="candidate.py").returncode == 1


def test_a_section_that_fails_is_named_and_the_others_run(script: Script) -> None:
    ran = script.run(FAILS="gpu/golden.py")
    assert ran.returncode == 1
    assert script.ends == {**dict.fromkeys(STARTED, 0), "golden": 7}
    assert "== golden\nit failed\n" in ran.stdout
    assert "golden         exit 7" in ran.stdout


def test_sections_are_chosen_by_name(script: Script) -> None:
    assert script.run("overhead", "facts").returncode == 0
    assert list(script.ends) == ["facts", "overhead"]
    assert len(script.notes) == 4


def test_what_got_no_time_is_named_with_how_to_run_it(script: Script) -> None:
    ran = script.run(TOTAL="85")
    assert ran.returncode == 1
    assert {name for name, status in script.ends.items() if status is None} == {"check", "fingerprints", "overhead"}
    assert "== overhead\nNot run: 8" in ran.stdout
    assert "For what did not run: benchmarks/on_gpu.sh check fingerprints overhead\n" in ran.stdout


def test_what_takes_too_long_is_ended_and_named(script: Script) -> None:
    ran = script.run("facts", TOTAL="6", PACE="30")
    assert ran.returncode == 1
    assert script.ends == {"facts": 124}
    assert "facts          time limit" in ran.stdout


def test_the_overhead_is_told_how_long_it_has(script: Script) -> None:
    script.run("overhead", TOTAL="200")
    (left,) = (script.folder / "notes.left").read_text().split()
    assert 195 <= int(left) <= 200


def test_without_what_a_launch_imports_nothing_runs_and_one_sentence_says_why(script: Script) -> None:
    ran = script.run(LACKS="megatron.core (ModuleNotFoundError: No module named 'megatron')")
    assert ran.returncode == 1
    assert script.ends == {name: 3 if name == "facts" else None for name in STARTED}
    assert not (script.folder / "notes").exists()
    lacking = "megatron.core (ModuleNotFoundError: No module named 'megatron')"
    assert f"== facts\n{script.folder / 'python'} cannot import {lacking} by itself, and launches do not" in ran.stdout


def test_the_package_is_found_whether_it_is_installed_or_not(script: Script) -> None:
    script.run("facts", "golden")
    script.run("cpu", PYTHONPATH="/somewhere")
    paths = (script.folder / "notes.path").read_text().split()
    assert paths == [str(ROOT), str(ROOT), f"{ROOT}:/somewhere"]


def test_a_script_that_is_ended_leaves_nothing_running(script: Script) -> None:
    mark = f"MARK={script.folder}"
    environment = script.environment(PACE="300", MARK=str(script.folder))
    with subprocess.Popen(script.command("tests", "golden"), env=environment, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not ((script.folder / "notes").exists() and len(script.notes) == 2):
            time.sleep(0.05)
        assert len(script.notes) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 143
    deadline = time.monotonic() + 30
    while (left := carrying(mark)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert left == []


def carrying(mark: str) -> list[str]:
    """Processes, but for this one, that have this in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue
    return [command for command in found if command]


def test_another_word_is_answered_with_the_usage(script: Script) -> None:
    ran = script.run("everything")
    assert ran.returncode == 2
    assert "Sections: facts digest tests golden check default-mode cpu fingerprints overhead." in ran.stderr
    assert ran.stderr.rstrip().endswith("in two pairs of launches, and by operator")


def test_an_unknown_pipeline_is_told_by_every_section_that_launches_it(tmp_path: Path) -> None:
    """The real Python, which needs neither an installed package nor a GPU for that."""
    sections = ("golden", "check", "default-mode", "fingerprints", "overhead")
    command = Script(tmp_path).command(*sections, "--pipeline", "no-such-pipeline")
    environment = {**os.environ, "PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": ""}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert ran.returncode == 1
    logs = {section: (tmp_path / "out" / f"{section}.log").read_text() for section in sections}
    assert [section for section, log in logs.items() if "There is no pipeline 'no-such-pipeline'" in log] == [*sections]
    assert not [section for section, log in logs.items() if "Traceback" in log]


@pytest.mark.slow
def test_facts_of_a_machine_without_a_gpu(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHON": sys.executable, "CUDA_VISIBLE_DEVICES": ""}
    command = Script(tmp_path).command("facts")
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, env=environment)
    assert "cannot import" not in ran.stdout
    assert Script(tmp_path).found["figures"]["facts"]["packages"]["torch"]
