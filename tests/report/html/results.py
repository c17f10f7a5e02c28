"""Results of real checks on the double, one for each verdict that a person meets often."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.double.double import Double
from tests.project import PIPELINE

#: By verdict: the faults of every launch and of single ones, and whether there is a golden.
_FAULTS: Mapping[str, tuple[Mapping[str, Mapping[str, Any]], bool]] = {
    "pass": ({}, True),
    "changed": ({"every": {"diverge": {"step": 4, "group": "optimizer", "leaf": "step"}, "jump": 1.0001}}, True),
    "nondeterministic": ({"every": {"random": {"step": 5}}}, True),
    "resume_broken": ({"resume_2": {"lost_optimizer": True}}, True),
    "no_baseline": ({}, False),
    "error": ({"reference": {"crash": {"step": 3}}}, True),
}

VERDICTS = tuple(_FAULTS)


class Results:
    """Makes results and pages under one folder, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._double = Double.create(folder / "double")
        self._project = folder / "project"
        (self._project / "pipelines").mkdir(parents=True)
        (self._project / "pipelines" / "tiny.yaml").write_text(PIPELINE, encoding="utf-8")
        self._recorded = False

    def result(self, verdict: str) -> Path:
        """The folder of a check that came to this verdict."""
        out = self._folder / verdict
        if out.exists():
            return out
        faults, golden = _FAULTS[verdict]
        self._double.misbehave()
        if golden and not self._recorded:
            self._run(0, "golden", "record", "tiny", *self._python, "--reason", "first recording", "--approver", "Ann")
            self._recorded = True
        kept = self._project / "golden"
        hidden = self._project / "golden-away"
        if not golden and kept.exists():
            kept.rename(hidden)
        self._double.misbehave(**faults)
        self._run(None, "check", "tiny", *self._python, "--out", str(out))
        if hidden.exists():
            shutil.rmtree(kept, ignore_errors=True)
            hidden.rename(kept)
        found = json.loads((out / "report.json").read_text(encoding="utf-8"))["verdict"]
        assert found == verdict
        return out

    def page(self, verdict: str) -> Path:
        """The report page of such a check, made by the command."""
        page = self._folder / f"{verdict}.html"
        if not page.exists():
            self._run(0, "report", str(self.result(verdict)), "--html", str(page))
        return page

    def comparison(self) -> Path:
        """The page of two launches of which one diverged."""
        page = self._folder / "comparison.html"
        sides = [str(self.result(verdict) / "launches" / "reference") for verdict in ("pass", "changed")]
        self._run(1, "compare", *sides, "--html", str(page))
        return page

    @property
    def _python(self) -> tuple[str, str]:
        return "--python", str(self._double.python)

    def _run(self, code: int | None, *words: str) -> None:
        command = [sys.executable, "-m", "validator", *words]
        ran = subprocess.run(command, cwd=self._project, capture_output=True, text=True, timeout=120, check=False)
        assert code is None or ran.returncode == code, ran.stderr
